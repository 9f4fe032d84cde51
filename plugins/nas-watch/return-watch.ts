import type { Clock, ShareSpec } from 'mountkeeper';

const KNOCK_EVERY_MS = 500;
const KNOCK_TIMEOUT_MS = 2_000;
/** Where something accepts and only the check of this machine fails: servers note who comes and says nothing. */
const RARELY_EVERY_MS = 5_000;

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

  /** Whether it has been dialled since it fell silent, and there was an end to that. */
  isDialled(name: string): boolean {
    return this.#seen.has(name);
  }

  /** Something is listening there, as of the last dial. */
  isOpen(name: string): boolean {
    return this.#seen.get(name)?.isOpen === true;
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }

  /**
   * Resolves with true when nothing listened before and something does now. `isUnclear`: it need not be silent, and is
   * dialled rarely while something listens.
   */
  async look(connection: ShareSpec['connection'], isUnclear: boolean): Promise<boolean> {
    const { clock, dial, signal } = this.#options;
    const { name } = connection;
    const before = this.#seen.get(name);
    const everyMs = isUnclear && before?.isOpen === true ? RARELY_EVERY_MS : KNOCK_EVERY_MS;
    if (this.#dialling.has(name) || (before && clock.monotonic() - before.atMs < everyMs)) return false;
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
