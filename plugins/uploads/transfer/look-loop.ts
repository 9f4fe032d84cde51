/** Runs scans repeatedly, with a pause that can be cut short. */
import { pause } from 'mountkeeper';
import type { Clock } from 'mountkeeper';

export interface LookLoopOptions {
  readonly clock: Clock;
  readonly end: AbortSignal;
  readonly look: () => Promise<unknown>;
  /** Called after each scan. */
  readonly restMs: () => number;
  readonly onFailure: (error: unknown) => void;
}

export class LookLoop {
  readonly #options: LookLoopOptions;
  #wake: () => void = () => undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: LookLoopOptions) {
    this.#options = options;
  }

  /** Resolves when it has ended with its signal. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  begin(): void {
    this.#ended = this.#run();
  }

  /** Ends the pause. */
  wake(): void {
    this.#wake();
  }

  async #run(): Promise<void> {
    const { clock, end, look, onFailure, restMs } = this.#options;
    while (!end.aborted) {
      try {
        await look();
      } catch (error) {
        if (!end.aborted) onFailure(error);
      }
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      // Woken, or ended.
      await pause(clock, restMs(), AbortSignal.any([woken.signal, end]));
    }
  }
}
