/**
 * Starts of the daemon that came to nothing are counted: after three, third parties' plugins are left out of
 * the next.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from './files/atomic-file.ts';

/** In the state folder: how many starts in a row have begun and not ended. */
const FILE = 'starts';
const MOST_FAILED = 3;

export interface SafeMode {
  /** Why a plugin is off. */
  readonly reason: string;
  /** For who administers the daemon. */
  readonly message: string;
}

export class StartAttempt {
  /** Undefined when third parties' plugins are on. */
  readonly safeMode: SafeMode | undefined;
  readonly #file: string | undefined;

  private constructor(safeMode: SafeMode | undefined, file: string | undefined) {
    this.safeMode = safeMode;
    this.#file = file;
  }

  /** The caller holds the lock of the state folder. What cannot be counted ends no start. */
  static async begin(
    stateDir: string,
    { isSafe, hasStrangers }: { isSafe: boolean; hasStrangers: boolean },
  ): Promise<StartAttempt> {
    if (isSafe) return new StartAttempt(asked(), undefined);
    if (!hasStrangers) return new StartAttempt(undefined, undefined);
    const file = join(stateDir, FILE);
    const failed = Number(await readFile(file, 'utf8').catch(() => '0')) || 0;
    await writeWhole(file, String(failed + 1)).catch(() => undefined);
    return new StartAttempt(failed >= MOST_FAILED ? afterFailures(failed) : undefined, file);
  }

  /** The daemon is up, or it was not a plugin that was in the way. */
  async end(): Promise<void> {
    // At the worst a start without third parties' plugins comes too early.
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
    reason: `the last ${String(failed)} starts of the daemon came to nothing, so it runs in safe mode; the next start tries this plugin again`,
    message: `safe mode: the last ${String(failed)} starts came to nothing, so third parties' plugins are off. Switch off or mend the one that is in the way; the next start tries them again`,
  };
}
