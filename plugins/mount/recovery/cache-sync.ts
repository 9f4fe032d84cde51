import { stat } from 'node:fs/promises';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { noteOnDisk } from './boot-record.ts';
import { writtenBytes } from '../stats/written-bytes.ts';

/** Part of coreutils. */
export const SYNC = 'sync';
/** What was written is on the disk at the latest after this time and what the disk itself takes. */
export const WRITE_OUT_EVERY_MS = 5_000;
/** A slow disk with much to write takes less. */
const HANGS_AFTER_MS = 60_000;
/** Nothing is begun anew before: a process that waits for a disk in the kernel cannot be ended. */
const TIMEOUT_MS = 24 * 3_600_000;

/** A process that writes into a cache folder. */
export interface Writer {
  readonly pid: number;
  readonly cacheDir: string;
}

export interface WriteOutOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  /** Names the file system that holds a folder. */
  readonly diskOf?: (folder: string) => Promise<string>;
  readonly written?: (pid: number) => Promise<number | undefined>;
  /** Told, for each cache folder of it, until when all is on the disk. */
  readonly onDisk?: (folder: string, untilMs: number) => Promise<void>;
}

/** One file system. */
interface Disk {
  /** The one that was asked for last. */
  folder: string;
  readonly folders: Set<string>;
  running?:
    { readonly done: Promise<boolean>; readonly sinceMs: number; readonly end: AbortController } | undefined;
  next?: Promise<boolean> | undefined;
  trouble?: string | undefined;
}

/**
 * Has the kernel write out what lies in its memory for the file systems of the caches. rclone never asks for
 * that, so what a client has closed would be gone with the power for half a minute, and a file could come
 * back without its content. By a process of its own, one at a time for each file system, and only when an
 * rclone has written something since the last one began.
 */
export class WriteOut {
  readonly #options: WriteOutOptions;
  readonly #disks = new Map<string, Disk>();
  /** Of each writer: what it had written when the last one that ended well began. */
  readonly #writers = new Map<Writer, number | undefined>();
  #isTicking = false;

  constructor(options: WriteOutOptions) {
    this.#options = options;
  }

  /** From now on, until the returned function is called, which has all that was written until then follow. */
  watch(writer: Writer): () => Promise<boolean> {
    let last: Promise<boolean> | undefined;
    this.#writers.set(writer, undefined);
    this.#tick();
    return () => {
      this.#writers.delete(writer);
      last ??= this.settle(writer.cacheDir);
      return last;
    };
  }

  /** True when all that the folder's file system was given before the call is on the disk. Never rejects. */
  async settle(folder: string): Promise<boolean> {
    const disk = await this.#disk(folder);
    if (disk === undefined) return false;
    const { running } = disk;
    if (running === undefined) return this.#begin(disk);
    // What is under way may have passed by what has just been written.
    disk.next ??= running.done.then(() => {
      disk.next = undefined;
      if (running.end.signal.aborted) return false;
      return disk.running?.done ?? this.#begin(disk);
    });
    return disk.next;
  }

  /** What does not work, a sentence for each file system. */
  get troubles(): readonly string[] {
    const inUse = new Set([...this.#writers.keys()].map(({ cacheDir }) => cacheDir));
    return [...this.#disks.values()].flatMap(({ trouble, folders }) =>
      trouble !== undefined && [...folders].some((folder) => inUse.has(folder)) ? [trouble] : [],
    );
  }

  /** Waits for what is under way, up to `ms`, and no longer keeps the daemon from ending. */
  async letGo(ms: number): Promise<void> {
    const disks = [...this.#disks.values()];
    const ends = disks.map(({ next, running }) => next ?? running?.done ?? Promise.resolve(true));
    await endsWithin(Promise.all(ends), ms, this.#options.clock);
    for (const { running } of disks) running?.end.abort();
  }

  #tick(): void {
    if (this.#isTicking || this.#writers.size === 0) return;
    this.#isTicking = true;
    this.#options.clock.after(WRITE_OUT_EVERY_MS, () => {
      this.#isTicking = false;
      void this.#lookAtAll();
      this.#tick();
    });
  }

  async #lookAtAll(): Promise<void> {
    const due = new Map<Disk, (() => void)[]>();
    await Promise.all(
      [...this.#writers].map(async ([writer, before]) => {
        const now = await (this.#options.written ?? writtenBytes)(writer.pid);
        if (now !== undefined && now === before) return;
        const disk = await this.#disk(writer.cacheDir);
        if (disk === undefined) return;
        const note = (): void => void (this.#writers.has(writer) && this.#writers.set(writer, now));
        due.set(disk, [...(due.get(disk) ?? []), note]);
      }),
    );
    for (const [disk, notes] of due) this.#beginIfFree(disk, notes);
  }

  #beginIfFree(disk: Disk, notes: readonly (() => void)[]): void {
    if (disk.running !== undefined) return this.#noticeHanging(disk);
    void this.#begin(disk).then((isDone) => {
      if (isDone) for (const note of notes) note();
    });
  }

  #begin(disk: Disk): Promise<boolean> {
    const end = new AbortController();
    const done = this.#run(disk, end.signal);
    disk.running = { done, sinceMs: this.#options.clock.monotonic(), end };
    return done;
  }

  async #run(disk: Disk, signal: AbortSignal): Promise<boolean> {
    const { clock, log, onDisk = noteOnDisk, processes } = this.#options;
    const [begunMs, folders] = [clock.now(), [...disk.folders]];
    try {
      const { code, stderr } = await processes.run({
        command: SYNC,
        args: ['-f', '--', disk.folder],
        timeoutMs: TIMEOUT_MS,
        signal,
      });
      if (code !== 0) throw new Error(stderr.trim() || `it ended with ${code}`);
      for (const folder of folders) await onDisk(folder, begunMs);
      if (disk.trouble !== undefined)
        log.info({ folder: disk.folder }, 'disk of the cache is written out again');
      disk.trouble = undefined;
      return true;
    } catch (error) {
      if (!signal.aborted) this.#tell(disk, `cannot be written out at once (${(error as Error).message})`);
      return false;
    } finally {
      disk.running = undefined;
    }
  }

  #noticeHanging(disk: Disk): void {
    const hangsMs = this.#options.clock.monotonic() - (disk.running?.sinceMs ?? Infinity);
    if (hangsMs >= HANGS_AFTER_MS) this.#tell(disk, 'does not come to an end with what it is to write');
  }

  #tell(disk: Disk, what: string): void {
    if (disk.trouble === undefined)
      this.#options.log.error(
        { folder: disk.folder, reason: what },
        'disk of the cache is not written out; a power cut would take what was written last',
      );
    disk.trouble = `The disk that holds ${disk.folder} ${what}: a power cut would take what was written into the shares last. The system's log says more.`;
  }

  async #disk(folder: string): Promise<Disk | undefined> {
    const name = await (this.#options.diskOf ?? deviceOf)(folder).catch(() => undefined);
    if (name === undefined) return undefined;
    const known = this.#disks.get(name) ?? { folder, folders: new Set() };
    // It may lie on another one than before, as after a disk was plugged in again.
    for (const other of this.#disks.values()) if (other !== known) other.folders.delete(folder);
    known.folder = folder;
    known.folders.add(folder);
    this.#disks.set(name, known);
    return known;
  }
}

/** False when it has not ended by then. */
export async function endsWithin(work: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const waiting = new AbortController();
  try {
    return await Promise.race([
      work.then(() => true),
      clock.sleep(ms, waiting.signal).then(
        () => false,
        () => false,
      ),
    ]);
  } finally {
    waiting.abort();
  }
}

async function deviceOf(folder: string): Promise<string> {
  return String((await stat(folder)).dev);
}
