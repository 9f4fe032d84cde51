/**
 * Reads the listings of forgotten folders again, a little later: a folder without a cached listing cannot
 * be used while the NAS is away, not even for writing.
 */
import { pause } from 'mountkeeper';
import type { Clock } from 'mountkeeper';

/** Uploads into one folder come in series: its listing is read once after them. */
const LATER_MS = 200;
/** Most folders per run; the others are read when they are next asked for. */
const MOST = 2_000;

export interface RenewalOptions {
  readonly clock: Clock;
  /** Reads their listings. */
  readonly read: (folders: readonly string[], signal: AbortSignal) => Promise<void>;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
}

export class Renewal {
  readonly #options: RenewalOptions;
  readonly #due = new Set<string>();
  #isRunning = false;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  forgotten(folders: readonly string[]): void {
    for (const folder of folders) if (this.#due.size < MOST) this.#due.add(folder);
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run().finally(() => (this.#isRunning = false));
  }

  async #run(): Promise<void> {
    const { clock, end, read } = this.#options;
    while (this.#due.size > 0 && !end.aborted) {
      // Ended with the mount; nobody waits for it.
      await pause(clock, LATER_MS, end);
      const folders = [...this.#due];
      this.#due.clear();
      // A listing that cannot be read now is read when it is next asked for.
      if (!end.aborted) await read(folders, end).catch(() => undefined);
    }
  }
}
