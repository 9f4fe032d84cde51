import { createSerialQueue, isShownOver, shareAccess, sizeBytes } from 'mountkeeper';
import type { Clock, Config, KeyPair, Logger, Secrets, ShareAccess } from 'mountkeeper';
import type { ProxyShare, ProxyState, ProxyUser } from '../proxy/state.ts';
import type { WebdavPaths } from './paths.ts';
import { tell } from './proxy-process.ts';
import { isOpenToAll } from './open-to-all.ts';
import { proxyUsers } from './users.ts';
import type { Admitted } from './users.ts';

/** Less than the 5 s that the core gives an exporter. */
const TELL_MS = 4_000;
/** Clients wait this long, because a share that was removed usually returns. */
const RETURN_MS = 15_000;

export interface ToldStateOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly paths: WebdavPaths;
  readonly secrets: Secrets;
  readonly config: () => Config;
  /** By their names. */
  readonly shares: () => ReadonlyMap<string, ProxyShare>;
  readonly certificate: () => KeyPair | undefined;
  readonly spool: () => string;
  /** See `ProxyState`. */
  readonly mark: string;
  /** See `proxyUsers`. */
  readonly own: ProxyUser;
  /** Of that group of the machine. Undefined: not known yet. */
  readonly systemUsers: (group: string | undefined) => readonly string[] | undefined;
}

/** What the proxy is told: whom it lets into which share, and how; and what it has answered. */
export class ToldState {
  readonly #options: ToldStateOptions;
  /** Until when the clients of a removed share wait for it. */
  readonly #returning = new Map<string, number>();
  readonly #turns = createSerialQueue();
  #told: string | undefined;
  #fingerprint: string | undefined;
  #userProblems: readonly string[] = [];

  constructor(options: ToldStateOptions) {
    this.#options = options;
  }

  /** Of the certificate that the proxy shows, by its own report. */
  get fingerprint(): string | undefined {
    return this.#fingerprint;
  }

  /** A sentence for each user who cannot log in. */
  get userProblems(): readonly string[] {
    return this.#userProblems;
  }

  /** To be called when the proxy has ended: the next one knows nothing. */
  forget(): void {
    this.#told = undefined;
    this.#fingerprint = undefined;
  }

  /** To be called before a share is removed: its clients wait, unless it is no longer to be shown. */
  expectBack(share: string): void {
    const { clock, config, shares } = this.#options;
    if (isShownOver(config(), share, 'webdav') && shares().has(share))
      this.#returning.set(share, clock.monotonic() + RETURN_MS);
  }

  /**
   * Resolves once the proxy has accepted what the state is when its turn comes: an older one never arrives after it. A
   * state that the proxy did not accept is sent again by the next call.
   */
  tell(): Promise<void> {
    return this.#turns.run(() => this.#tell());
  }

  async #tell(): Promise<void> {
    const { clock, paths } = this.#options;
    const state = this.#current();
    const text = JSON.stringify(state);
    if (text === this.#told) return;
    this.#told = undefined;
    const { fingerprint } = await tell(paths, state, clock.deadline(TELL_MS));
    this.#fingerprint = fingerprint;
    this.#told = text;
  }

  #current(): ProxyState {
    const { secrets, config, clock, log, mark, own, ...now } = this.#options;
    const { cache, web, webdav } = config();
    // By the running document, which may be newer than the exporter. One that switches WebDAV off lets nobody in.
    const admitted: Admitted = webdav.enabled ? webdav : { users: [] };
    const { users, problems } = proxyUsers(admitted, secrets, own);
    for (const reason of problems.filter((one) => !this.#userProblems.includes(one)))
      log.error({ reason }, 'WebDAV user left out');
    this.#userProblems = problems;
    const isMeant = (share: string): boolean => isShownOver(config(), share, 'webdav');
    const shares = new Map([...now.shares()].filter(([share]) => isMeant(share)));
    for (const [share, end] of this.#returning)
      if (shares.has(share) || !isMeant(share) || end <= clock.monotonic()) this.#returning.delete(share);
    const certificate = now.certificate();
    const returning = [...this.#returning.keys()];
    const absent = config()
      .shares.filter(({ name, protocols }) => protocols.includes('webdav') && !shares.has(name))
      .map(({ name }) => name);
    return {
      users,
      ...(certificate && { certificate }),
      systemUsers: now.systemUsers(admitted.system_group),
      systemGroup: admitted.system_group,
      isOpen: webdav.enabled && isOpenToAll(webdav),
      refusesInClear: !webdav.plain_http,
      hostnames: web.hostnames,
      trustedProxies: web.trusted_proxies,
      spool: now.spool(),
      minFreeBytes: sizeBytes(cache.min_free_space),
      shares: [...shares.values()],
      access: accessOf(config(), [...shares.keys(), ...returning, ...absent]),
      returning,
      absent,
      mark,
    };
  }
}

/** By the share's name; shares that name nobody are left out. */
function accessOf(config: Config, shares: readonly string[]): Readonly<Record<string, ShareAccess>> {
  return Object.fromEntries(
    shares.flatMap((name) => {
      const access = shareAccess(config, name);
      return access ? [[name, access] as const] : [];
    }),
  );
}
