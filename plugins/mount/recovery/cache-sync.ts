import { stat } from 'node:fs/promises';
import { endsWithin } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { noteNotLater, noteOnDisk } from './boot-note.ts';

/** From coreutils. */
export const SYNC = 'sync';
/**
 * Interval of syncs: what was written is on the disk at most this much later, plus the time that the disk
 * needs.
 */
export const WRITE_OUT_EVERY_MS = 5_000;
/** A sync that takes longer counts as hanging; even a slow disk with much to write is faster. */
const HANGS_AFTER_MS = 60_000;
/**
 * A new sync does not begin earlier, because a process that waits for a disk in the kernel cannot be
 * killed.
 */
const TIMEOUT_MS = 24 * 3_600_000;

/** Who writes into a cache folder: an rclone, or the users of a share. */
export interface Writer {
  readonly cacheDir: string;
  /** Another figure once something was written; undefined where that cannot be told. */
  readonly written: () => number | undefined;
}

export interface WatchedWriter {
  /** Something was written: it is brought to the disk now, or with the next interval. */
  wrote(): void;
  /** Ends the watching, and syncs what was written until then. */
  leave(): Promise<boolean>;
}

export interface WriteOutOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  /** Returns an id of the file system that contains a folder. */
  readonly diskOf?: (folder: string) => Promise<string>;
  /** Called for each cache folder on the disk, with the time until which everything is on it. */
  readonly onDisk?: (folder: string, untilMs: number) => Promise<void>;
  /** Called for each watched cache folder in each interval, with the time. */
  readonly notLater?: (folder: string, nowMs: number) => Promise<void>;
}

/** One file system. */
interface Disk {
  /** The folder that was synced last. */
  folder: string;
  readonly folders: Set<string>;
  /** When the last sync began. */
  begunMs: number;
  running?:
    | {
        readonly done: Promise<boolean>;
        readonly end: AbortController;
      }
    | undefined;
  next?: Promise<boolean> | undefined;
  trouble?: string | undefined;
}

/**
 * Makes the kernel write the caches' file systems to disk regularly. Most programs never ask for that, nor does
 * rclone, so for half a minute a file that was closed would be lost in a power cut, or come back without its
 * content. Runs `sync` as a child process, one at a time for each file system, and only when something was written
 * since the last one began.
 */
export class WriteOut {
  readonly #options: WriteOutOptions;
  readonly #disks = new Map<string, Disk>();
  /** For each writer, the bytes it had written when the last successful sync began. */
  readonly #writers = new Map<Writer, number | undefined>();
  #isTicking = false;

  constructor(options: WriteOutOptions) {
    this.#options = options;
  }

  watch(writer: Writer): WatchedWriter {
    let last: Promise<boolean> | undefined;
    this.#writers.set(writer, undefined);
    this.#tick();
    return {
      wrote: () => void this.#soon(writer),
      leave: () => {
        this.#writers.delete(writer);
        last ??= this.settle(writer.cacheDir);
        return last;
      },
    };
  }

  /**
   * True when everything written to the folder's file system before the call is on the disk. Never rejects.
   */
  async settle(folder: string): Promise<boolean> {
    const disk = await this.#disk(folder);
    if (disk === undefined) return false;
    const { running } = disk;
    if (running === undefined) return this.#begin(disk);
    // A running sync may have missed what has just been written.
    disk.next ??= running.done.then(() => {
      disk.next = undefined;
      if (running.end.signal.aborted) return false;
      return disk.running?.done ?? this.#begin(disk);
    });
    return disk.next;
  }

  /** What does not work, one sentence per file system. */
  get troubles(): readonly string[] {
    const inUse = this.#folders;
    return [...this.#disks.values()].flatMap(({ trouble, folders }) =>
      trouble !== undefined && [...folders].some((folder) => inUse.has(folder)) ? [trouble] : [],
    );
  }

  /** Waits at most `ms` for a running sync, which then no longer keeps the daemon from ending. */
  async letGo(ms: number): Promise<void> {
    const disks = [...this.#disks.values()];
    const ends = disks.map(({ next, running }) => next ?? running?.done ?? Promise.resolve(true));
    await endsWithin(this.#options.clock, ms, Promise.all(ends));
    for (const { running } of disks) running?.end.abort();
  }

  get #folders(): ReadonlySet<string> {
    return new Set([...this.#writers.keys()].map(({ cacheDir }) => cacheDir));
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

  /** The interval sees to it where the last sync is younger. */
  async #soon(writer: Writer): Promise<void> {
    if (!this.#writers.has(writer)) return;
    const disk = await this.#disk(writer.cacheDir);
    const isDue = disk && this.#options.clock.monotonic() - disk.begunMs >= WRITE_OUT_EVERY_MS;
    if (isDue === true) await this.#lookAtAll();
  }

  async #lookAtAll(): Promise<void> {
    const { clock, notLater = noteNotLater } = this.#options;
    for (const folder of this.#folders) await notLater(folder, clock.now());
    const due = new Map<Disk, (() => void)[]>();
    await Promise.all(
      [...this.#writers].map(async ([writer, before]) => {
        const now = writer.written();
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
    disk.begunMs = this.#options.clock.monotonic();
    const done = this.#run(disk, end.signal);
    disk.running = { done, end };
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
    const hangsMs = this.#options.clock.monotonic() - disk.begunMs;
    if (hangsMs >= HANGS_AFTER_MS) this.#tell(disk, 'does not finish writing');
  }

  #tell(disk: Disk, what: string): void {
    if (disk.trouble === undefined)
      this.#options.log.error(
        { folder: disk.folder, reason: what },
        'disk of the cache is not written out; a power cut would take what was written last',
      );
    disk.trouble =
      `The disk that holds ${disk.folder} ${what}: ` +
      `a power cut would take what was written into the shares last. The system's log says more.`;
  }

  async #disk(folder: string): Promise<Disk | undefined> {
    // A cache folder that cannot be asked shows in every read and write of the share.
    const name = await (this.#options.diskOf ?? deviceOf)(folder).catch(() => undefined);
    if (name === undefined) return undefined;
    const known = this.#disks.get(name) ?? { folder, folders: new Set(), begunMs: -Infinity };
    // The folder may be on another file system than before, for example after a disk was plugged in again.
    for (const other of this.#disks.values()) if (other !== known) other.folders.delete(folder);
    known.folder = folder;
    known.folders.add(folder);
    this.#disks.set(name, known);
    return known;
  }
}

async function deviceOf(folder: string): Promise<string> {
  return String((await stat(folder)).dev);
}
