/** Something that is asked every 20 ms until it is ended: each failure, and how long each answer took. */
import { sleep } from '../platform/wait.ts';

const PAUSE_MS = 20;

export class Poll {
  readonly failures: string[] = [];
  readonly tookMs: number[] = [];
  readonly #over = new AbortController();
  readonly #done: Promise<void>;

  /** `ask` gives what was wrong with the answer, or undefined. */
  constructor(ask: () => Promise<string | undefined>) {
    this.#done = this.#run(ask);
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#done;
  }

  async #run(ask: () => Promise<string | undefined>): Promise<void> {
    for (; !this.#over.signal.aborted; await sleep(PAUSE_MS)) {
      const fromMs = performance.now();
      const failure = await ask().catch(String);
      this.tookMs.push(performance.now() - fromMs);
      if (failure !== undefined) this.failures.push(failure);
    }
  }
}
