/** The service `uploader`: one uploader for each share that is mounted. */
import { lstat } from 'node:fs/promises';
import { undefinedWhenMissing } from 'mountkeeper';
import type {
  Clock,
  Conflict,
  Logger,
  NotificationEvent,
  Processes,
  Uploader,
  UploadOptions,
} from 'mountkeeper';
import { NOTHING_LATE, noteLateWrites } from './compare/late-writes.ts';
import { shownPath } from './compare/names.ts';
import { planUpper } from './compare/plan.ts';
import { Records } from './compare/records.ts';
import { createScanner } from './compare/scan.ts';
import type { Proof } from './proof/same-content.ts';
import { settleUpper } from './transfer/leaving/settle.ts';
import { KEPT_DAYS } from './transfer/leaving/left-files.ts';
import type { Discarded } from './transfer/leaving/discard.ts';
import { ShareUploader } from './transfer/share-uploads.ts';
import type { ManagedUploads } from './transfer/managed.ts';

const MOST_PATHS = 1_000;
const LOOK_TIMEOUT_MS = 60_000;

export interface UploaderTools {
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'run'>;
  readonly log: Logger;
  readonly notify: (event: NotificationEvent) => Promise<void>;
  readonly proofOf: (share: string) => Proof;
}

export interface RunningUploader extends Uploader {
  /** By the share's name. */
  readonly shares: ReadonlyMap<string, ManagedUploads>;
}

export function createUploader(tools: UploaderTools): RunningUploader {
  const shares = new Map<string, ManagedUploads>();
  /** Pauses are kept across mounts. */
  const pauses = new Map<string, number>();
  return {
    shares,
    start: (options) => {
      const name = options.layer.shareName;
      const uploads = startShare(options, tools);
      const until = pauses.get(name) ?? 0;
      if (until > tools.clock.now()) uploads.pause(until);
      const handle: ManagedUploads = handleOf(uploads, {
        onPause: (time) => (time === 0 ? pauses.delete(name) : pauses.set(name, time)),
        // Another uploader may have replaced it.
        onStop: () => shares.get(name) === handle && shares.delete(name),
        onDiscard: (done) => {
          tools.log.warn(
            { share: name, path: done.path, keptAt: done.keptAt },
            'a waiting file was discarded',
          );
          tell(discardEvent(name, done, tools.clock.now()), tools);
        },
      });
      shares.set(name, handle);
      return handle;
    },
    settle: (options) => settleUpper(options, tools.processes),
    noteLateWrites: (options) => noteLateWrites(options, tools.processes),
    waiting: (upper, records) => waiting(upper, records, tools),
  };
}

interface HandleEvents {
  /** Milliseconds since the epoch; 0 ends a pause. */
  readonly onPause: (until: number) => void;
  readonly onStop: () => void;
  readonly onDiscard: (done: Discarded) => void;
}

function handleOf(uploads: ShareUploader, { onPause, onStop, onDiscard }: HandleEvents): ManagedUploads {
  return {
    get figures() {
      return uploads.figures;
    },
    get pausedUntil() {
      return uploads.pausedUntil;
    },
    pause: (time) => {
      onPause(time);
      uploads.pause(time);
    },
    sendNow: (path) => uploads.sendNow(path),
    resolve: (conflict, keep) => uploads.resolve(conflict, keep),
    discard: async (asked) => {
      const done = await uploads.discard(asked);
      onDiscard(done);
      return done;
    },
    verify: (path, asked) => uploads.verify(path, asked),
    receipt: (path, asked) => uploads.receipt(path, asked),
    look: (signal, how) => uploads.look(signal, how),
    holdMoves: (signal) => uploads.holdMoves(signal),
    settleMoves: (signal) => uploads.settleMoves(signal),
    refreshed: (folder, isDeep) => uploads.refreshed(folder, isDeep),
    flush: () => {
      onPause(0);
      uploads.flush();
    },
    queue: () => uploads.queue(),
    conflicts: () => uploads.conflicts(),
    stop: async () => {
      onStop();
      await uploads.stop();
    },
  };
}

function startShare(options: UploadOptions, tools: UploaderTools): ShareUploader {
  const { clock, processes, log, proofOf } = tools;
  const { shareName } = options.layer;
  const onConflict = (conflict: Conflict): void => tell(eventOf(shareName, conflict), tools);
  const proof = (): Proof => proofOf(shareName);
  return new ShareUploader({ ...options, clock, processes, log, onConflict, proof });
}

function tell(event: NotificationEvent, { notify, log }: Pick<UploaderTools, 'notify' | 'log'>): void {
  notify(event).catch((error: unknown) =>
    log.warn({ event: event.type, data: event.data, err: error }, 'event not told'),
  );
}

function discardEvent(share: string, { path, bytes, keptAt }: Discarded, at: number): NotificationEvent {
  return {
    type: 'file.discarded',
    severity: 'warning',
    message:
      `${path} of share ${share} was discarded before it was on the remote; what was written here is kept at ` +
      `${keptAt} for ${KEPT_DAYS} days.`,
    data: { share, path, bytes, kept_at: keptAt },
    key: `file.discarded ${share} ${path} ${at}`,
  };
}

function eventOf(share: string, { path, copy, what, at }: Conflict): NotificationEvent {
  const other = copy === path ? 'what was written here is kept at its place' : `the other one is ${copy}`;
  const message =
    `Two versions of ${path} in share ${share}: others changed it on the remote as well. Both stay; ` +
    `${other}.`;
  return {
    type: 'file.conflict',
    severity: 'warning',
    message,
    data: { share, path, copy, what },
    key: `file.conflict ${share} ${path} ${at}`,
  };
}

/**
 * Counts waiting changes from a scan alone. Without a mount the lower layer is unknown, so the count may be
 * slightly too high.
 */
async function waiting(
  upper: string,
  folder: string,
  { processes, clock }: UploaderTools,
): ReturnType<Uploader['waiting']> {
  // One that cannot be read is no empty one: what waits in it is unknown then.
  const stats = await lstat(upper, { bigint: true }).catch(undefinedWhenMissing);
  if (stats === undefined) return { count: 0, bytes: 0, paths: [] };
  const known = await Records.peek(folder, `${stats.ino} ${stats.birthtimeNs}`);
  const scan = await createScanner(upper, processes).scan(clock.deadline(LOOK_TIMEOUT_MS));
  const items = [
    ...planUpper(scan, known, {
      isOpen: () => false,
      inUse: new Set(),
      quietAt: () => undefined,
      isRested: () => false,
      isCut: () => false,
      late: NOTHING_LATE,
      nameProblem: () => undefined,
      isUrgent: () => false,
      isWhole: true,
    }).items.values(),
  ];
  return {
    count: items.length,
    bytes: items.reduce((sum, { bytes }) => sum + bytes, 0),
    paths: items.slice(0, MOST_PATHS).map(({ path }) => shownPath(path)),
  };
}
