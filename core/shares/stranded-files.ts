/**
 * Files in the cache of a active mount that it does not upload: written while the share had other settings.
 * The figures of a mount do not count them, so the disk is asked once the mount says that it is clean.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';

const LOOK_AGAIN_MS = 5_000;
const KNOWN_EVERY_MS = 60_000;

export interface StrandedFilesOptions {
  readonly share: string;
  /** Dirty files on the disk, those of this mount and all others of the share. */
  readonly pending: () => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly isClean: () => boolean;
  readonly onChange: () => void;
}

export class StrandedFiles {
  readonly #options: StrandedFilesOptions;
  #count: number | undefined;
  #suspected = 0;
  #nextLookAtMs = -Infinity;
  #isLooking = false;

  constructor(options: StrandedFilesOptions) {
    this.#options = options;
  }

  /** Undefined as long as the disk has not been read with certainty. */
  get count(): number | undefined {
    return this.#count;
  }

  /** Looks at the disk until it is known that nothing is stranded; never rejects. */
  async lookWhenDue(): Promise<void> {
    const { clock, isClean, log, pending, share } = this.#options;
    if (this.#isLooking || this.#count === 0 || !isClean() || clock.monotonic() < this.#nextLookAtMs) return;
    this.#isLooking = true;
    try {
      const count = await pending();
      if (isClean()) this.#judge(count);
    } catch (error) {
      log.warn({ share, err: error }, 'cache not read, what waits in it is unknown');
      this.#nextLookAtMs = clock.monotonic() + KNOWN_EVERY_MS;
    } finally {
      this.#isLooking = false;
    }
  }

  /** A file written between two looks at the figures is no stranded one: it takes two looks at the disk. */
  #judge(found: number): void {
    const { clock, log, onChange, share } = this.#options;
    const known = this.#count;
    const isCertain = found === 0 || this.#suspected > 0;
    this.#suspected = found;
    this.#nextLookAtMs = clock.monotonic() + (isCertain ? KNOWN_EVERY_MS : LOOK_AGAIN_MS);
    if (!isCertain || found === known) return;
    this.#count = found;
    if (found > 0)
      log.warn({ share, files: found }, 'files written with former settings of the share wait in its cache');
    onChange();
  }
}
