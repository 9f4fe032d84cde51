/**
 * Opens the web server's address and the command socket. An address that cannot be used stops nothing else:
 * it is retried until it works.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Notice } from '../contract/notifications.ts';
import type { Address } from '../sdk/http/address.ts';

const AGAIN_MS = 5_000;
const NOTICE = 'web-address';

export interface WebEntranceParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly http: {
    readonly address: Address | undefined;
    listen(address: Address): Promise<void>;
    listenForCommands(stateDir: string): Promise<void>;
  };
  readonly status: { setStanding(key: string, notice: Notice | undefined): void };
}

export class WebEndpoint {
  readonly #parts: WebEntranceParts;
  #wanted: Address | undefined;
  #isClosed = false;
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

  /** Never rejects; only the address of the last call counts. */
  async listen(wanted: Address): Promise<void> {
    const { http, log, status } = this.#parts;
    this.#cancel();
    this.#wanted = wanted;
    try {
      await http.listen(wanted);
      if (this.#wanted === wanted) status.setStanding(NOTICE, undefined);
    } catch (error) {
      if (this.#wanted !== wanted || this.#isClosed) return;
      const reason = (error as Error).message;
      log.error({ ...wanted, reason }, 'web interface not reachable, trying again every 5 s');
      status.setStanding(NOTICE, {
        level: 'error',
        message: `the web interface is not where [web] says, ${this.#still()}: ${reason}; it is tried again every 5 s`,
      });
      this.#cancel = this.#parts.clock.after(AGAIN_MS, () => void this.listen(wanted));
    }
  }

  #still(): string {
    const { address } = this.#parts.http;
    return address === undefined ? 'and nowhere else' : `still on ${address.host} port ${address.port}`;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }
}
