import { randomUUID } from 'node:crypto';
import { entranceOf, ownAddress, shareAccess } from 'mountkeeper';
import type { Clock, Config, Logger, Secrets } from 'mountkeeper';
import { isAnswering, isShown } from './health-check.ts';
import type { Address } from './health-check.ts';
import type { ProxyUser } from '../proxy/state.ts';
import { isOpenToAll } from './open-to-all.ts';
import { proxyUsers } from './users.ts';

const ANSWER_MS = 2_000;
/** A proxy that is alive but answers nobody in this many checks in a row is to be ended. */
const PATIENCE = 5;

export interface ClientViewOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly address: Address;
  readonly secrets: Secrets;
  readonly config: () => Config;
  /** Those that the proxy is to show. */
  readonly shares: () => readonly string[];
  /** The proxy hangs. */
  readonly onDeaf: () => void;
}

/** What a client with access sees of the proxy, found out by asking as one. */
export class ClientView {
  /** Tells the proxy which requests are this daemon's own. */
  readonly mark = randomUUID();
  /** See `proxyUsers`. */
  readonly own: ProxyUser = { name: randomUUID(), password: randomUUID() };
  readonly #options: ClientViewOptions;
  #isAnswering = false;
  #lost: readonly string[] = [];
  #silences = 0;

  constructor(options: ClientViewOptions) {
    this.#options = options;
  }

  /** Whether the list of shares was shown when it was last asked for. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** The shares that were not there. */
  get lost(): readonly string[] {
    return this.#lost;
  }

  /** It is known without asking that nobody is answered. */
  setDown(): void {
    this.#isAnswering = false;
  }

  async ask(signal: AbortSignal): Promise<void> {
    const deadline = this.#options.clock.deadline(ANSWER_MS, signal);
    try {
      this.#isAnswering = await this.#isLetIn(undefined, deadline);
      this.#silences = 0;
    } catch (error) {
      if (!signal.aborted) await this.#bearSilence((error as Error).message, signal);
      return;
    }
    await this.#findLost(signal, deadline);
  }

  async #bearSilence(reason: string, signal: AbortSignal): Promise<void> {
    const { clock, log, onDeaf } = this.#options;
    this.#isAnswering = false;
    this.#silences += 1;
    log.warn({ reason, silences: this.#silences }, 'the WebDAV proxy does not answer');
    if (this.#silences < PATIENCE) return;
    this.#silences = 0;
    // Wrong passwords from this machine slow down the daemon's own request, too: an answer that says so
    // still counts.
    const isDeaf = !(await isAnswering(this.#server, clock.deadline(ANSWER_MS, signal)));
    if (isDeaf && !signal.aborted) onDeaf();
  }

  async #findLost(signal: AbortSignal, deadline: AbortSignal): Promise<void> {
    const { shares } = this.#options;
    const names = shares();
    const found = await Promise.all(
      // Lost for its clients, however it fails.
      names.map((name) => this.#isLetIn(name, deadline).catch(() => false)),
    );
    if (!signal.aborted)
      this.#lost = names.filter((name, index) => found[index] === false && shares().includes(name));
  }

  /** Asks for the share, or for the list of shares, as the first user who may. */
  async #isLetIn(share: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { secrets, config } = this.#options;
    // As the proxy is told: by the running document.
    const { webdav } = config();
    const { users } = proxyUsers(webdav, secrets, this.own);
    const access = share === undefined ? undefined : shareAccess(config(), share);
    const user = users.find(({ name }) => entranceOf(access, name) !== 'none');
    // None of its users is one of this server: nobody is to find it.
    if (access && !user) return true;
    if (!isOpenToAll(webdav) && !user) return false;
    const path = share === undefined ? '/' : `/${encodeURIComponent(share)}/`;
    return isShown(this.#server, path, { user, mark: this.mark }, signal);
  }

  /** Where this machine itself reaches the proxy. */
  get #server(): Address {
    const { address } = this.#options;
    return { ...address, ...ownAddress(address) };
  }
}
