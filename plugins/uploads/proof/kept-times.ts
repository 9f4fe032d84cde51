/**
 * How far off the remote's times are: learnt from files that it shows with another time than they were sent with,
 * although their content is the same. A single one may be odd by itself: its time does not fit the protocol, or others
 * have given it another. So it takes two to learn that the remote keeps none, which counts for good.
 */
import type { Logger, RemoteFiles } from 'mountkeeper';
import type { Records } from '../compare/records.ts';

/** FAT keeps times in steps of two seconds; a bit more. What is further off is no time that was sent. */
const COARSEST_MS = 2_100;
/** FAT has no time before, and 32 bits of seconds none behind. */
const EARLIEST_MS = Date.UTC(1980, 0, 2);
const LATEST_MS = Date.UTC(2038, 0, 18);

export interface KeptTimesOptions {
  readonly shareName: string;
  readonly remote: Pick<RemoteFiles, 'notePrecision'>;
  readonly log: Pick<Logger, 'warn'>;
}

/** In milliseconds since the epoch. */
export interface FileTimes {
  readonly sentMs: number;
  readonly shownMs: number;
}

/** One share's, since the daemon's start. */
export class KeptTimes {
  readonly #options: KeptTimesOptions;
  /** The first file of which the remote has not kept the time. */
  #first: string | undefined;

  constructor(options: KeptTimesOptions) {
    this.#options = options;
  }

  /**
   * `place`: of the file, also where a copy beside it was sent. What is learnt takes effect at once, and is on disk
   * with the next record.
   */
  note(place: string, times: FileTimes, records: Pick<Records, 'precisionMs' | 'notePrecision'>): void {
    const precisionMs = this.#shownBy(place, times);
    if (precisionMs <= records.precisionMs) return;
    const { shareName, remote, log } = this.#options;
    records.notePrecision(precisionMs);
    remote.notePrecision?.(precisionMs);
    if (precisionMs === Infinity)
      log.warn(
        { share: shareName, files: [this.#first, place] },
        'the remote does not keep the times of files: from now on they are compared by their content',
      );
  }

  #shownBy(place: string, { sentMs, shownMs }: FileTimes): number {
    if (Math.abs(shownMs - sentMs) < COARSEST_MS) return COARSEST_MS;
    if (sentMs < EARLIEST_MS || sentMs > LATEST_MS) return 0;
    this.#first ??= place;
    return this.#first === place ? 0 : Infinity;
  }
}
