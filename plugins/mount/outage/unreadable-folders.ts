/**
 * While the NAS is away, SMB clients get an error for a folder whose listing cannot be read. rclone, bindfs and the
 * overlay say so, too; but smbd (4.17, and the head of its source) takes an error in the midst of a listing for its
 * end, and shows the folder as empty. So it must not open such a folder: a process (`permission-events.ts`) is asked by
 * the kernel before.
 *
 * It runs only while the NAS does not answer: each opening on the share waits for its word, 20 to 40 µs, and smbd's
 * opening of a folder for a process that reads it, 1.2 ms (measured on Linux 6.18).
 */
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { lessened, rest } from 'mountkeeper';
import type { Clock, Logger, MountTable } from 'mountkeeper';
import { HELPER_CAPABILITY, helperCommand, SAID } from './permission-events.ts';

/** How often the process is asked whether it lives: everybody who opens something waits for one that hangs. */
const ASK_EVERY_MS = 500;
/** It is killed when it has not answered this often in a row. At its start, nobody waits for it yet. */
const UNANSWERED = 2;
const UNANSWERED_AT_START = 20;
/** Pause after one that has failed. */
const AGAIN_MS = 10_000;
const MOST_WORDS = 500;
const NOT_DENIED = 'while the NAS is away, folders that nobody has listed may look empty over SMB';

/** `doubtful`: the last question had no answer. `shut`: the NAS is away, and rclone does not even dial. */
export type Reach = 'answers' | 'doubtful' | 'shut';

export interface UnreadableFoldersOptions {
  readonly shareName: string;
  /** Where the overlay is mounted, and its source in the kernel's mount table. */
  readonly mountPoint: string;
  readonly source: string;
  readonly mountTable: Pick<MountTable, 'find'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
}

type Helper = ChildProcessByStdio<Writable, Readable, Readable>;

export class UnreadableFolders {
  readonly #options: UnreadableFoldersOptions;
  #isShut = false;
  /** Aborted when the NAS is back; undefined while it is there. */
  #away: AbortController | undefined;

  constructor(options: UnreadableFoldersOptions) {
    this.#options = options;
  }

  /** Called with what each question to the remote has shown. */
  set(reach: Reach): void {
    this.#isShut = reach === 'shut';
    if (reach === 'answers') {
      this.#away?.abort();
      this.#away = undefined;
    } else if (!this.#away) {
      this.#away = new AbortController();
      void this.#run(AbortSignal.any([this.#away.signal, this.#options.end]));
    }
  }

  /** Until the signal aborts. Never rejects. */
  async #run(over: AbortSignal): Promise<void> {
    const { clock, log, shareName } = this.#options;
    let hasWarned = false;
    while (!over.aborted) {
      const reason = await this.#help(over).catch((error: unknown) => (error as Error).message);
      if (over.aborted) return;
      if (!hasWarned) log.warn({ share: shareName, reason }, NOT_DENIED);
      hasWarned = true;
      await rest(clock, AGAIN_MS, over);
    }
  }

  /** Resolves with why the process has ended. */
  async #help(over: AbortSignal): Promise<string> {
    const { mountPoint, mountTable, source } = this.#options;
    // A frozen share may be covered by an empty file system.
    if ((await mountTable.find(mountPoint))?.source !== source) return `the share is not at ${mountPoint}`;
    const perl = helperCommand(mountPoint);
    if (!perl) return `not known how on ${process.arch}`;
    if (over.aborted) return 'over';
    const [command, args] = lessened(...perl, [HELPER_CAPABILITY]);
    const helper = spawn(command, args, {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    });
    let words = '';
    const ended = new Promise<string>((resolve, reject) => {
      helper.once('error', reject);
      helper.once('close', (code, signal) => resolve(words.trim() || `it ended with ${code ?? signal}`));
    });
    // Without a free descriptor Node makes no streams, and emits the error later.
    if (helper.pid === undefined) return ended;
    for (const stream of [helper.stdin, helper.stdout, helper.stderr]) stream.on('error', () => undefined);
    helper.stderr.on('data', (piece: Buffer) => (words = `${words}${piece.toString()}`.slice(-MOST_WORDS)));
    const reason = await Promise.race([ended, this.#ask(helper, over).then(() => 'it did not answer')]);
    // The kernel lets everybody pass who waits for it.
    helper.kill('SIGKILL');
    return reason;
  }

  /** Resolves when it does not answer any more, or when it is over. */
  async #ask(helper: Helper, over: AbortSignal): Promise<void> {
    let [unanswered, most] = [0, UNANSWERED_AT_START];
    helper.stdout.on('data', () => {
      [unanswered, most] = [0, UNANSWERED];
    });
    while (!over.aborted && unanswered < most) {
      unanswered += 1;
      helper.stdin.write(this.#isShut ? SAID.shut : SAID.doubtful);
      await rest(this.#options.clock, ASK_EVERY_MS, over);
    }
  }
}
