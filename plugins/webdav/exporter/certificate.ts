import { createSerialQueue, isLoopback } from 'mountkeeper';
import type { CertificatesService, Config, KeptCertificate, KeyPair, Notice } from 'mountkeeper';
import { isOpenToAll } from './open-to-all.ts';

export interface ProxyCertificateOptions {
  readonly certificates: Pick<CertificatesService, 'keep'>;
  readonly config: () => Config;
  /** The pair, or what is to be said of it, has changed. */
  readonly onChange: () => void;
}

/** The certificate that the proxy shows to its clients: of `webdav.tls`, read again when its files change. */
export class ProxyCertificate {
  readonly #options: ProxyCertificateOptions;
  /** Shares are added, and documents applied, while it is being read: the newest names must win. */
  readonly #turns = createSerialQueue();
  #kept: KeptCertificate | undefined;
  #names: readonly string[] = [];
  /** Changes while it is being read, too. */
  #isClosed: boolean = false;

  constructor(options: ProxyCertificateOptions) {
    this.#options = options;
  }

  /** Undefined without TLS, and as long as there was no good one. */
  get pair(): KeyPair | undefined {
    return this.#kept?.pair;
  }

  /**
   * Called again when a document has been applied: a certificate that the daemon makes holds the names of
   * `web.hostnames`.
   */
  keep(): Promise<void> {
    return this.#turns.run(() => this.#keepNow());
  }

  async #keepNow(): Promise<void> {
    const { certificates, config, onChange } = this.#options;
    const { web, webdav } = config();
    const names = [...web.hostnames, webdav.listen];
    if (!webdav.tls || this.#isClosed) return;
    if (this.#kept && names.join() === this.#names.join()) return;
    this.#names = names;
    const former = this.#kept;
    this.#kept = await certificates.keep(webdav.tls, { label: 'webdav.tls', names, onChange });
    await former?.close();
    if (this.#isClosed) await this.#kept.close();
  }

  /** `isShownOne`: the proxy shows one, though it may be that of a former daemon. */
  notices(isShownOne: boolean): readonly Notice[] {
    if (!this.#kept) return [];
    const { notices, pair, problem } = this.#kept;
    if (pair || !isShownOne) return notices;
    return [{ level: 'warning', message: `webdav.tls: ${problem}; the former certificate stays in use` }];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#kept?.close();
  }
}

/** What to do where other machines may send passwords without TLS; undefined where they cannot. */
export function plainHttpAdvice({ web, webdav }: Pick<Config, 'web' | 'webdav'>): string | undefined {
  const { listen, plain_http: isAllowed, tls } = webdav;
  if (tls || isOpenToAll(webdav) || web.trusted_proxies.length > 0 || isLoopback(listen)) return undefined;
  return isAllowed
    ? `WebDAV speaks plain HTTP on ${listen}: passwords and files cross the network in clear. ` +
        'Set webdav.tls; or put a proxy with TLS in front, and name it in web.trusted_proxies.'
    : `WebDAV speaks plain HTTP on ${listen}, so it takes passwords from this machine alone, and nobody comes in ` +
        'from another one. Set webdav.tls; or put a proxy with TLS in front, and name it in web.trusted_proxies; ' +
        'or take them in clear, by webdav.plain_http = true.';
}
