import { rest } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';
import { freeBytes } from '../cache/free-bytes.ts';
import { keepReserve } from '../cache/reserve.ts';
import type { OpenFiles } from '../stats/open-files.ts';
import type { OpenFilesLook } from '../stats/open-files-look.ts';
import type { OverwrittenRecords } from './overwritten-records.ts';
import type { TruncateFix } from './truncate-fix.ts';
import type { WriteBackRescue } from './write-back-rescue.ts';

const LOOK_EVERY_MS = 1_000;
/**
 * While no file is open for writing. The figures are read more often, and each time the open files are looked at; so
 * an idle mount is not looked at for its upkeep as well.
 */
const LOOK_IDLE_EVERY_MS = 2_500;
const RESERVE_EVERY_MS = 5_000;

export interface MaintenanceOptions {
  readonly cacheDir: string;
  readonly rescue: Pick<WriteBackRescue, 'tend'>;
  readonly truncateFix: Pick<TruncateFix, 'mend'>;
  readonly records: Pick<OverwrittenRecords, 'mend'>;
  readonly openFiles: Pick<OpenFilesLook, 'now' | 'next'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Everything that is mended on an active mount, every second or two in a loop of its own: files that rclone's write
 * path would lose or leave too long, and the reserve in the cache. Whoever reads the figures of the mount
 * changes nothing; what is not mended yet is counted there. Resolves when `end` aborts, and never rejects: a
 * step that fails is tried again in the next round.
 */
export async function maintain(options: MaintenanceOptions, end: AbortSignal): Promise<void> {
  const { clock, log } = options;
  const keepRoom = createReserveStep(options);
  let isIdle = false;
  let seen: OpenFiles | undefined;
  const steps: readonly (() => Promise<void>)[] = [
    async () => {
      isIdle = false;
      const files = seen ?? (await options.openFiles.now());
      await options.rescue.tend(files);
      isIdle = files.open === 0;
    },
    async () => options.truncateFix.mend(),
    async () => options.records.mend(),
    keepRoom,
  ];
  while (!end.aborted) {
    for (const step of steps) {
      await step().catch((err: unknown) => log.debug({ err }, 'a step of the upkeep of a mount failed'));
    }
    seen = undefined;
    if (isIdle) seen = await options.openFiles.next(LOOK_IDLE_EVERY_MS, end);
    else await rest(clock, LOOK_EVERY_MS, end);
  }
}

function createReserveStep({ cacheDir, clock }: MaintenanceOptions): () => Promise<void> {
  let isKept = false;
  let lookedAtMs = -Infinity;
  return async () => {
    if (isKept || clock.monotonic() - lookedAtMs < RESERVE_EVERY_MS) return;
    lookedAtMs = clock.monotonic();
    isKept = await keepReserve(cacheDir, await freeBytes(cacheDir));
  };
}
