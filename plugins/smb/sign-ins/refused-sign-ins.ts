/** Tells of the sign-ins that smbd refuses, as it writes them down. */
import { logIgnored, RefusedSignInCounts } from 'mountkeeper';
import type { Clock, Logger, RefusedSignIns } from 'mountkeeper';
import { OutputReader } from './output-reader.ts';
import { refusalIn } from './refusal.ts';

export interface RefusedSignInsOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  readonly noteFile: string;
  readonly hasGuests: boolean;
  readonly tell: (refused: RefusedSignIns) => void;
}

export class RefusedSignInsWatch {
  readonly #options: RefusedSignInsOptions;
  readonly #reader: OutputReader;
  readonly #counts = new RefusedSignInCounts();
  #isReading = false;

  constructor(options: RefusedSignInsOptions) {
    this.#options = options;
    this.#reader = new OutputReader(options.noteFile);
  }

  /** Reads what smbd has written since the last time. Never rejects. */
  async look(logFile: string): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    const { clock, log, hasGuests, tell } = this.#options;
    const says = { now: clock.now(), hasGuests };
    try {
      await this.#reader
        .read(logFile, (line) => {
          const refusal = refusalIn(line, says);
          if (refusal) this.#counts.add(refusal);
        })
        .catch(logIgnored(log, 'reading what smbd has refused', { logFile }));
      const told = this.#counts.take();
      if (told) tell(told);
    } finally {
      this.#isReading = false;
    }
  }
}
