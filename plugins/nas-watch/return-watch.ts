import type { Clock, ShareSpec } from 'mountkeeper';

const KNOCK_EVERY_MS = 500;
const KNOCK_TIMEOUT_MS = 2_000;

export interface ReturnWatchOptions {
  readonly clock: Clock;
  readonly dial: (connection: ShareSpec['connection'], signal: AbortSignal) => Promise<boolean | undefined>;
  readonly signal: AbortSignal;
}

/** Dials silent NASes twice a second, so that their return is noticed at once and not with the next probe. */
export class ReturnWatch {
  readonly #options: ReturnWatchOptions;
  readonly #seen = new Map<string, { readonly atMs: number; readonly isOpen: boolean | undefined }>();
  readonly #dialling = new Set<string>();

  constructor(options: ReturnWatchOptions) {
    this.#options = options;
  }

  /** Something is listening there, as of the last dial. */
  isOpen(name: string): boolean {
    return this.#seen.get(name)?.isOpen === true;
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }

  /** Resolves with true when nothing listened before and something does now. */
  async look(connection: ShareSpec['connection']): Promise<boolean> {
    const { clock, dial, signal } = this.#options;
    const { name } = connection;
    const before = this.#seen.get(name);
    if (this.#dialling.has(name) || (before && clock.monotonic() - before.atMs < KNOCK_EVERY_MS))
      return false;
    this.#dialling.add(name);
    const end = new AbortController();
    try {
      const isOpen = await dial(
        connection,
        clock.deadline(KNOCK_TIMEOUT_MS, AbortSignal.any([signal, end.signal])),
      );
      this.#seen.set(name, { atMs: clock.monotonic(), isOpen });
      return isOpen === true && before?.isOpen === false && !signal.aborted;
    } finally {
      end.abort();
      this.#dialling.delete(name);
    }
  }
}
