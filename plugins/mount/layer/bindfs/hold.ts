/**
 * Lets calls wait while another rclone is started below a share, or while what lies below is changed: bindfs is
 * stopped meanwhile, so nobody is told of an error that is over in half a second. Once for each rclone that has
 * worked, and never long: a program that looks into a folder hangs with it.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ChildProcess } from 'node:child_process';
import type { Clock, Logger, ManagedProcess } from 'mountkeeper';
import { isBetweenCalls } from './between-calls.ts';

/** Longest wait for another rclone. */
export const LONGEST_HOLD_MS = 2_000;
/** Longest wait while something is moved on the remote: some round trips over a slow line. */
const LONGEST_CHANGE_MS = 5_000;
/** Longest wait for calls that had begun before, and how long they go on between two looks. */
const SETTLE_MS = 1_000;
const GO_ON_MS = 2;
/** Goes on without the daemon: a bindfs that stays stopped would hang the share. */
const GUARD = 'sleep "$1"; kill -CONT "$2"';

export interface HoldOptions {
  readonly shareName: string;
  readonly bindfs: Pick<ManagedProcess, 'pid' | 'signal'>;
  /** A former daemon may have ended in the middle of a wait. */
  readonly adopted: boolean;
  readonly log: Logger;
}

export class Hold {
  readonly #options: HoldOptions;
  #guard: ChildProcess | undefined;
  /** It is for a change of what lies below, not for another rclone. */
  #isChange = false;
  /** When the first change began that calls wait for, in monotonic milliseconds. */
  #sinceMs = 0;
  #changes = 0;
  #isOver = false;

  constructor(options: HoldOptions) {
    this.#options = options;
    if (options.adopted) options.bindfs.signal('SIGCONT');
  }

  get isBegun(): boolean {
    return this.#guard !== undefined;
  }

  /** Calls wait for another rclone from now on, and are passed on by `end`, or by themselves. */
  begin(): void {
    if (this.#guard && !this.#isChange) return;
    this.#begin(LONGEST_HOLD_MS);
    this.#isChange = false;
  }

  /**
   * For as long as a change of what lies below takes; ends, with all others, when what it returns is called. One that
   * begins within another's time has all of its own, so calls wait for twice that at most.
   */
  calls(): () => void {
    this.#beginChange();
    return () => this.#endChange();
  }

  /** The same for one of several: what it returns ends the wait when it was the last of them. */
  callsForOne(): () => void {
    this.#beginChange();
    this.#changes += 1;
    return () => {
      this.#changes -= 1;
      if (this.#changes <= 0) this.#endChange();
    };
  }

  /** Lets go on what bindfs had begun, until it waits for its next calls, for a second at most. */
  async settle(clock: Pick<Clock, 'deadline' | 'sleep'>): Promise<void> {
    const { bindfs } = this.#options;
    const deadline = clock.deadline(SETTLE_MS);
    while (this.#guard && !deadline.aborted && !isBetweenCalls(bindfs.pid)) {
      bindfs.signal('SIGCONT');
      await clock.sleep(GO_ON_MS);
      if (this.isBegun) bindfs.signal('SIGSTOP');
    }
  }

  #beginChange(): void {
    const isFirst = this.#guard === undefined;
    const now = performance.now();
    if (isFirst) [this.#sinceMs, this.#changes] = [now, 0];
    if (isFirst || (this.#isChange && now - this.#sinceMs < LONGEST_CHANGE_MS)) {
      this.#begin(LONGEST_CHANGE_MS);
      this.#isChange = true;
    }
  }

  /** Where another rclone is awaited, that goes on. */
  #endChange(): void {
    if (this.#isChange) this.end();
  }

  #begin(longestMs: number): void {
    const { bindfs, log, shareName } = this.#options;
    const former = this.#guard;
    if (this.#isOver) return;
    // Both in one turn, the guard first: the daemon may be killed at any moment.
    const guard = spawn('sh', ['-c', GUARD, 'sh', String(longestMs / 1_000), String(bindfs.pid)], {
      env: { PATH: process.env['PATH'] },
      detached: true,
      stdio: 'ignore',
    });
    guard.unref();
    guard.once('error', (error) => log.warn({ share: shareName, err: error }, 'nobody waits for rclone'));
    if (guard.pid === undefined) return;
    this.#guard = guard;
    guard.once('exit', () => {
      if (this.#guard !== guard) return;
      this.#guard = undefined;
      // One that was killed has let nobody go on.
      bindfs.signal('SIGCONT');
    });
    if (former) endGuard(former);
    bindfs.signal('SIGSTOP');
  }

  end(): void {
    const guard = this.#guard;
    if (guard?.pid === undefined) return;
    this.#guard = undefined;
    this.#options.bindfs.signal('SIGCONT');
    endGuard(guard);
  }

  /** Nobody waits any more, for good. */
  close(): void {
    this.#isOver = true;
    this.end();
  }
}

/** With what it has started. */
function endGuard({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended just now.
  }
}

/** Whether a signal has stopped the process, whoever sent it. */
export function isStopped(pid: number): boolean {
  try {
    // The name before the state may hold anything, brackets too.
    return /^[Tt]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1) ?? '');
  } catch {
    // It has ended.
    return false;
  }
}
