import type { Logger } from 'mountkeeper';

/** Makes smbd take what it has not taken yet. One at a time, and a failure is told once, however often it repeats. */
export class ApplyAgain {
  readonly #apply: () => Promise<void>;
  readonly #log: Pick<Logger, 'error'>;
  #isUnderWay = false;
  /** Why it failed the last time; undefined when it did not. */
  #reason: string | undefined;

  constructor(apply: () => Promise<void>, log: Pick<Logger, 'error'>) {
    this.#apply = apply;
    this.#log = log;
  }

  /** For each look: while smbd's tools hang, the looks do not pile up behind each other. */
  begin(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    void this.run().then(() => (this.#isUnderWay = false));
  }

  /** After all that is under way already. Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#apply();
      this.#reason = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#reason)
        this.#log.error({ err: error }, 'smbd does not serve by its new configuration yet');
      this.#reason = reason;
    }
  }
}
