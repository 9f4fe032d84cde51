/**
 * Whether bindfs answers. A share shows what was written here without it, so that a bindfs that hangs shows
 * in no figure: only who reads a file of the NAS waits, for ever.
 */
import type { Clock, MountReader } from 'mountkeeper';

/** The helper that asks is always there: a question costs next to nothing, and no call to the remote. */
const EVERY_MS = 10_000;
/** More than calls are held while another rclone is started (`Hold`). */
const TIMEOUT_MS = 4_000;

export interface AnswerCheckOptions {
  /** Where bindfs is mounted. */
  readonly lower: string;
  readonly mountReader: Pick<MountReader, 'touch'>;
  readonly clock: Clock;
}

export class AnswerCheck {
  readonly #options: AnswerCheckOptions;
  #isSilent = false;
  #isAsking = false;
  #askedAtMs: number;

  constructor(options: AnswerCheckOptions) {
    this.#options = options;
    this.#askedAtMs = options.clock.monotonic();
  }

  /** Rejects with `TimeoutError` when it does not answer in time. */
  async ask(timeoutMs: number): Promise<void> {
    const { lower, mountReader } = this.#options;
    try {
      await mountReader.touch(lower, { timeoutMs });
      this.#isSilent = false;
    } catch (error) {
      // Any other error is an answer, too: there may be no rclone just now.
      this.#isSilent = (error as Error).name === 'TimeoutError';
      if (this.#isSilent) throw error;
    }
  }

  /** Throws when the last question had no answer. Asks again when that is due, and waits for nothing. */
  assure(): void {
    const nowMs = this.#options.clock.monotonic();
    if (!this.#isAsking && (this.#isSilent || nowMs - this.#askedAtMs >= EVERY_MS)) {
      this.#isAsking = true;
      this.#askedAtMs = nowMs;
      const isOver = (): boolean => (this.#isAsking = false);
      // What went wrong is in `#isSilent`.
      void this.ask(TIMEOUT_MS).then(isOver, isOver);
    }
    if (this.#isSilent) throw new Error('bindfs below the share does not answer');
  }
}
