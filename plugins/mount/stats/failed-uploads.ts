import { join } from 'node:path';
import type { Clock } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import { inPlainWords } from '../rclone/error-messages.ts';

const LOOK_EVERY_MS = 5_000;
const LOG_LINES = 1_000;
/** `2026/11/21 07:48:04 ERROR : a/f1: vfs cache: failed to upload try #1, will retry in 2s: reason` */
const HEAD = /^(\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d)\s+ERROR\s*: /;
const MARK = ': vfs cache: failed to upload try #';
const TAIL = /^\d+, will retry in [^:]+: (.*)$/;
/** Reasons that the remote's own state already shows. */
const REMOTE_IS_AWAY = [
  /dial |connection (refused|reset|lost|closed)|timed? ?out|deadline exceeded|no route|unreachable/i,
  /EOF|broken pipe|no such host|failed to connect|couldn't connect|context canceled/i,
];

export interface FailedUploads {
  readonly count: number;
  /** A plain sentence, unless the remote was away. */
  readonly reason: string | undefined;
}

export interface FailedUploadsSource {
  readonly clock: Clock;
  /** Where the metadata of this share's files is. */
  readonly metaRoot: string;
  /** Last lines of rclone's output. */
  readonly tail: (lines: number) => Promise<readonly string[]>;
}

const NONE: FailedUploads = { count: 0, reason: undefined };

/**
 * Counts files that rclone failed to upload since they were last changed. No version has figures for them,
 * and only newer ones list the attempts in their queue. The log of all versions names the file, and its
 * metadata tells whether it still waits.
 */
export function createFailedUploads({
  clock,
  metaRoot,
  tail,
}: FailedUploadsSource): (mayBe: boolean) => Promise<FailedUploads> {
  let last = NONE;
  let lookedAtMs = -Infinity;
  return async (mayBe) => {
    if (!mayBe) return (last = NONE);
    if (clock.monotonic() - lookedAtMs < LOOK_EVERY_MS) return last;
    lookedAtMs = clock.monotonic();
    last = await failedNow(failuresIn(await tail(LOG_LINES)), metaRoot);
    return last;
  };
}

interface Failure {
  readonly atMs: number;
  readonly reason: string;
}

/** The last failure of each file. */
function failuresIn(lines: readonly string[]): ReadonlyMap<string, Failure> {
  const failures = new Map<string, Failure>();
  for (const line of lines) {
    const mark = line.lastIndexOf(MARK);
    const [head, year, month, day, time] = (mark >= 0 && HEAD.exec(line)) || [];
    const reason = TAIL.exec(line.slice(mark + MARK.length))?.[1];
    if (head === undefined || reason === undefined) continue;
    // The log has whole seconds, rounded down.
    failures.set(line.slice(head.length, mark), {
      atMs: new Date(`${year}-${month}-${day}T${time}`).getTime() + 999,
      reason,
    });
  }
  return failures;
}

async function failedNow(failures: ReadonlyMap<string, Failure>, metaRoot: string): Promise<FailedUploads> {
  let count = 0;
  let reason: string | undefined;
  for (const [name, failure] of failures) {
    const meta = await readMeta(join(metaRoot, name));
    if (meta === undefined || meta === 'torn' || !meta.Dirty || Date.parse(meta.ModTime) > failure.atMs)
      continue;
    count += 1;
    if (!REMOTE_IS_AWAY.some((said) => said.test(failure.reason)))
      reason = inPlainWords([failure.reason], 'the remote does not take them');
  }
  return { count, reason };
}

export function failedUploadsTrouble({ count, reason }: FailedUploads): string | undefined {
  if (reason === undefined) return undefined;
  return (
    `${count} ${count === 1 ? 'file' : 'files'} could not be uploaded so far: ${reason}; ` +
    'they stay in the cache and are tried again'
  );
}
