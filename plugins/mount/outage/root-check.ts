import type { Clock } from 'mountkeeper';
import type { RcClient } from '../rclone/control/remote-control.ts';

/** The answer would be as long as the top folder's listing, and is not needed. */
const LOOK_EVERY_MS = 300_000;
const LOOK_AGAIN_MS = 15_000;
const DEADLINE_MS = 60_000;
const IS_MISSING =
  /directory not found|no such file or directory|object not found|bad_network_name|NoSuchBucket/i;

export interface RootCheckOptions {
  readonly rc: RcClient;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly clock: Clock;
}

/**
 * Detects that the remote path itself is gone while the NAS answers: deleted, renamed, or on a disk that
 * the NAS has lost.
 */
export class RootCheck {
  readonly #options: RootCheckOptions;
  #dueMs: number;
  #isLooking = false;
  #isMissing = false;

  constructor(options: RootCheckOptions) {
    this.#options = options;
    this.#dueMs = options.clock.monotonic() + LOOK_EVERY_MS;
  }

  get trouble(): string | undefined {
    return this.#isMissing
      ? 'its path is not there on the remote any more; writing now creates it again: ' +
          'check whether a disk of the NAS is missing'
      : undefined;
  }

  /** Call it often. Waits for nothing. */
  lookWhenDue(): void {
    const { clock } = this.#options;
    if (this.#isLooking || clock.monotonic() < this.#dueMs) return;
    this.#isLooking = true;
    void this.#look().finally(() => {
      this.#isLooking = false;
      this.#dueMs = clock.monotonic() + (this.#isMissing ? LOOK_AGAIN_MS : LOOK_EVERY_MS);
    });
  }

  /** Together these filters make rclone send an empty listing. */
  async #look(): Promise<void> {
    const { clock, fs, rc } = this.#options;
    const opt = { dirsOnly: true, filesOnly: true, noModTime: true, noMimeType: true };
    try {
      await rc.call('operations/list', { fs, remote: '', opt }, clock.deadline(DEADLINE_MS));
      this.#isMissing = false;
    } catch (error) {
      // Any other error says nothing about the path.
      if (IS_MISSING.test((error as Error).message)) this.#isMissing = true;
    }
  }
}
