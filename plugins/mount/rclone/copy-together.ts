/** One call of rclone for many small files, and what became of each. */
import type { RcClient } from './control/remote-control.ts';
import { JobFailure } from './jobs.ts';
import type { Jobs } from './jobs.ts';

export interface Together {
  /** The folder in which they lie by their paths on the remote, and the remote, in rclone's notation. */
  readonly srcFs: string;
  readonly dstFs: string;
  readonly config: Readonly<Record<string, unknown>>;
}

export interface Way {
  readonly rc: RcClient;
  readonly jobs: Jobs;
  readonly signal: AbortSignal;
}

/**
 * Each file is looked for by its name and then sent, one after the other: rclone looks no further ahead than two
 * files, so that hardly more time is between the two than if each had a call of its own.
 */
const ONE_BY_ONE = {
  IgnoreExisting: true,
  NoTraverse: true,
  NoUpdateDirModTime: true,
  Transfers: 1,
  Checkers: 1,
  MaxBacklog: 1,
} as const;

interface Transferred {
  readonly name: string;
  readonly error: string;
  /** It was looked at, and nothing was sent. */
  readonly checked: boolean;
}

/**
 * Sends what is not there. Resolves with what was sent (true) and what was left as it was found (false). Rejects
 * where rclone has done neither.
 */
export async function copyTogether(
  { config, ...ends }: Together,
  { rc, jobs, signal }: Way,
): Promise<ReadonlyMap<string, boolean>> {
  const group = jobs.newGroup();
  const failure = await jobs
    .run('sync/copy', { ...ends, _config: { ...config, ...ONE_BY_ONE } }, { signal, isShort: true, group })
    .then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof JobFailure) return error;
        throw error;
      },
    );
  const { transferred } = await rc.call<{ transferred: Transferred[] | null }>(
    'core/transferred',
    { group },
    signal,
  );
  const ended = endsOf(transferred ?? []);
  if (failure !== undefined && ended.size === 0) throw failure;
  return ended;
}

/** A file that was looked at and then sent is told of twice. Of one that was sent and not taken, nothing is known. */
function endsOf(all: readonly Transferred[]): ReadonlyMap<string, boolean> {
  const isFailed = new Set(all.filter(({ error }) => error !== '').map(({ name }) => name));
  const isSent = new Set(all.filter(({ checked }) => !checked).map(({ name }) => name));
  const names = new Set(all.map(({ name }) => name).filter((name) => !isFailed.has(name)));
  return new Map([...names].map((name) => [name, isSent.has(name)]));
}
