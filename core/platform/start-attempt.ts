/**
 * Counts failed starts of the daemon: after three in a row, the next one runs without third-party plugins.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from './files/atomic-file.ts';

/** File in the state folder: how many starts in a row have begun and not succeeded. */
const FILE = 'starts';
const MOST_FAILED = 3;

export interface SafeMode {
  /** Why third-party plugins are off; shown with each of them. */
  readonly reason: string;
  /** The same for the administrator. */
  readonly message: string;
}

export class StartAttempt {
  /** Undefined when third-party plugins are on. */
  readonly safeMode: SafeMode | undefined;
  readonly #file: string | undefined;

  private constructor(safeMode: SafeMode | undefined, file: string | undefined) {
    this.safeMode = safeMode;
    this.#file = file;
  }

  /**
   * The caller holds the lock of the state folder. A counter that cannot be read or written does not stop
   * the start.
   */
  static async begin(
    stateDir: string,
    { isSafe, hasStrangers }: { isSafe: boolean; hasStrangers: boolean },
  ): Promise<StartAttempt> {
    if (isSafe) return new StartAttempt(asked(), undefined);
    if (!hasStrangers) return new StartAttempt(undefined, undefined);
    const file = join(stateDir, FILE);
    // The first start, or a count that cannot be read: strangers' plugins get their chance.
    const failed = Number(await readFile(file, 'utf8').catch(() => '0')) || 0;
    // The state folder says soon enough that it takes nothing; this start is just not counted.
    await writeWhole(file, String(failed + 1)).catch(() => undefined);
    return new StartAttempt(failed >= MOST_FAILED ? afterFailures(failed) : undefined, file);
  }

  /** Resets the count: the daemon is up, or it failed for a reason that no plugin could have caused. */
  async end(): Promise<void> {
    // If it cannot be removed, at worst safe mode comes too early.
    if (this.#file !== undefined) await rm(this.#file, { force: true }).catch(() => undefined);
  }
}

function asked(): SafeMode {
  return {
    reason: 'the daemon runs in safe mode; start it without --safe-mode to have this plugin',
    message: "safe mode: third parties' plugins are off until the daemon is started without --safe-mode",
  };
}

function afterFailures(failed: number): SafeMode {
  return {
    reason:
      `the last ${String(failed)} starts of the daemon failed, so it runs in safe mode; ` +
      'the next start tries this plugin again',
    message:
      `safe mode: the last ${String(failed)} starts failed, so third parties' plugins are ` +
      'off. Switch off or repair the one that causes it; the next start tries them again',
  };
}
