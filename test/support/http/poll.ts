/**
 * Something that is asked again and again until it is ended, every 20 ms where nothing else is said: each failure, and
 * how long each answer took.
 */
import { sleep } from '../platform/wait.ts';

const PAUSE_MS = 20;

export class Poll {
  readonly failures: string[] = [];
  readonly tookMs: number[] = [];
  readonly #over = new AbortController();
  readonly #done: Promise<void>;

  /** `ask` gives what was wrong with the answer, or undefined. */
  constructor(ask: () => Promise<string | undefined>, pauseMs = PAUSE_MS) {
    this.#done = this.#run(ask, pauseMs);
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#done;
  }

  async #run(ask: () => Promise<string | undefined>, pauseMs: number): Promise<void> {
    for (; !this.#over.signal.aborted; await sleep(pauseMs)) {
      const fromMs = performance.now();
      const failure = await ask().catch(String);
      this.tookMs.push(performance.now() - fromMs);
      if (failure !== undefined) this.failures.push(failure);
    }
  }
}
