/**
 * Opens the web server's address and the command socket. An address that cannot be used stops nothing else:
 * it is retried until it works. So is TLS without a certificate: the address never speaks plain HTTP instead.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { WebConfig } from '../contract/config.ts';
import type { Clock } from '../contract/platform.ts';
import type { Notice } from '../contract/notifications.ts';
import type { CertificatesService, KeptCertificate, KeyPair } from '../contract/http.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';
import { isLoopback } from '../sdk/http/address.ts';
import type { Address } from '../sdk/http/address.ts';

const AGAIN_MS = 5_000;
const NOTICE = 'web-address';
const CERTIFICATE_NOTICE = 'web-certificate';
const PLAIN_NOTICE = 'web-plain-http';

/** Where and how to listen. */
export type WebPlace = Pick<
  WebConfig,
  'listen' | 'port' | 'hostnames' | 'trusted_proxies' | 'tls' | 'plain_http'
>;

export interface WebEntranceParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly http: {
    readonly address: Address | undefined;
    listen(address: Address, certificate?: KeyPair): Promise<void>;
    closePlain(): Promise<void>;
    listenForCommands(stateDir: string): Promise<void>;
  };
  readonly status: { setStanding(key: string, notice: Notice | undefined): void };
  readonly certificates: Pick<CertificatesService, 'keep'>;
}

/** A certificate that is kept, and what for. */
interface Held {
  readonly place: WebPlace;
  readonly kept: KeptCertificate;
}

export class WebEndpoint {
  readonly #parts: WebEntranceParts;
  readonly #queue = createSerialQueue();
  #wanted: WebPlace | undefined;
  #held: Held | undefined;
  #isClosed = false;
  #problem: string | undefined;
  #cancel = (): void => undefined;

  constructor(parts: WebEntranceParts) {
    this.#parts = parts;
  }

  /** Never rejects: without the socket the command line uses the web address, with a password. */
  async listenForCommands(stateDir: string): Promise<void> {
    const { http, log, status } = this.#parts;
    try {
      await http.listenForCommands(stateDir);
    } catch (error) {
      const reason = (error as Error).message;
      log.error(
        { stateDir, reason },
        'command socket not opened, the command line needs the web address and its password',
      );
      status.setStanding('command-socket', {
        level: 'warning',
        message: `the command socket in ${stateDir} cannot be opened: ${reason}`,
      });
    }
  }

  /** Why it does not listen where it was told to, and tries again. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Never rejects; only the place of the last call counts. */
  async listen(wanted: WebPlace): Promise<void> {
    this.#wanted = wanted;
    await this.#queue.run(() => this.#open(wanted));
  }

  async #open(wanted: WebPlace): Promise<void> {
    const { http, log, status } = this.#parts;
    // A reload that ends after the daemon's stop would keep its process alive.
    if (this.#wanted !== wanted || this.#isClosed) return;
    this.#cancel();
    const address = { host: wanted.listen, port: wanted.port };
    try {
      await http.listen(address, await this.#certificate(wanted));
      this.#problem = undefined;
      status.setStanding(NOTICE, undefined);
      const message = plainHttpAdvice(wanted);
      status.setStanding(PLAIN_NOTICE, message === undefined ? undefined : { level: 'warning', message });
    } catch (error) {
      if (this.#wanted !== wanted || this.#isClosed) return;
      // Whoever has switched TLS on relies on it: no password crosses the network in clear meanwhile.
      if (wanted.tls) await this.#endPlain();
      const reason = (error as Error).message;
      log.error({ ...address, reason }, 'web interface not reachable, trying again every 5 s');
      this.#problem = `the web interface is not where [web] says, ${this.#still()}: ${reason}`;
      status.setStanding(NOTICE, {
        level: 'error',
        message: `the web interface is not where [web] says, ${this.#still()}: ${reason}; it is tried again every 5 s`,
      });
      this.#cancel = this.#parts.clock.after(AGAIN_MS, () => void this.listen(wanted));
    }
  }

  async #endPlain(): Promise<void> {
    await this.#parts.http.closePlain();
    this.#parts.status.setStanding(PLAIN_NOTICE, undefined);
  }

  /** Undefined without TLS. Rejects when there is no certificate that can be used. */
  async #certificate(place: WebPlace): Promise<KeyPair | undefined> {
    const { certificates, status } = this.#parts;
    const { hostnames, listen, tls } = place;
    if (this.#held && !needsSame(this.#held.place, place)) {
      const { kept } = this.#held;
      this.#held = undefined;
      status.setStanding(CERTIFICATE_NOTICE, undefined);
      await kept.close();
    }
    if (!tls) return undefined;
    this.#held ??= {
      place,
      kept: await certificates.keep(tls, {
        label: 'web.tls',
        names: [...hostnames, listen],
        onChange: () => void (this.#wanted && this.listen(this.#wanted)),
      }),
    };
    const { notices, pair, problem } = this.#held.kept;
    if (!pair) throw new Error(problem);
    const [worst] = notices;
    const message = notices.map((notice) => notice.message).join('; ');
    status.setStanding(CERTIFICATE_NOTICE, worst && { level: worst.level, message });
    return pair;
  }

  #still(): string {
    const { address } = this.#parts.http;
    return address === undefined ? 'and nowhere else' : `still on ${address.host} port ${address.port}`;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#queue.run(async () => this.#held?.kept.close());
  }
}

/** What to do where other machines may send passwords without TLS; undefined where they cannot. */
export function plainHttpAdvice({
  listen,
  plain_http: isAllowed,
  tls,
  trusted_proxies: proxies,
}: Pick<WebPlace, 'listen' | 'plain_http' | 'tls' | 'trusted_proxies'>): string | undefined {
  if (tls || proxies.length > 0 || isLoopback(listen)) return undefined;
  return isAllowed
    ? `The web server speaks plain HTTP on ${listen}: passwords and all that it shows cross the network in clear. ` +
        'Set web.tls; or put a proxy with TLS in front, and name it in web.trusted_proxies.'
    : `The web server speaks plain HTTP on ${listen}, so it takes passwords, tokens and sign-ins from this machine ` +
        'alone; all that it shows crosses the network in clear. Set web.tls; or put a proxy with TLS in front, and ' +
        'name it in web.trusted_proxies; or take them in clear, by web.plain_http = true.';
}

function needsSame(one: WebPlace, other: WebPlace): boolean {
  const needs = ({ hostnames, listen, tls }: WebPlace): unknown =>
    tls && { files: [tls.certificate, tls.key, tls.self_made], names: [listen, ...hostnames] };
  return isDeepStrictEqual(needs(one), needs(other));
}
