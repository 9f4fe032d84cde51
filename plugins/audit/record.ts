/**
 * The file of the record: appended to by one writer that nobody waits for, begun anew when it is large, with a
 * bounded number of former files. Lines that cannot be written wait, a bounded number; how many were lost is
 * written down as soon as the disk takes it.
 */
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { lineOf } from './entries.ts';
import type { Entry } from './entries.ts';

const NAME = 'audit.log';
const MODE = 0o600;
/** Characters. */
const MOST_WAITING = 1024 * 1024;
const TRY_AGAIN_MS = 5_000;
const LF = 10;

export interface RecordLimits {
  readonly maxBytes: number;
  readonly keep: number;
}

export interface RecordOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: () => RecordLimits;
}

export class AuditRecord {
  readonly #options: RecordOptions;
  readonly #file: string;
  #waiting: string[] = [];
  #waitingLength = 0;
  #lost = 0;
  #writing: Promise<void> | undefined;
  #again: (() => void) | undefined;
  #problem: string | undefined;

  constructor(options: RecordOptions) {
    this.#options = options;
    this.#file = join(options.folder, NAME);
  }

  /** Why lines wait, while they do. */
  get problem(): string | undefined {
    if (this.#problem === undefined) return undefined;
    const lost = this.#lost === 0 ? '' : `, and ${this.#lost} are lost`;
    const what = `the record of changes in ${this.#file} cannot be written (${this.#problem})`;
    return `${what}: ${this.#waiting.length} lines wait${lost}`;
  }

  /** Never waits and never throws. */
  write(entry: Entry): void {
    const line = lineOf(this.#options.clock.now(), entry);
    if (this.#waitingLength + line.length > MOST_WAITING) this.#lost += 1;
    else {
      this.#waiting.push(line);
      this.#waitingLength += line.length;
    }
    if (this.#again === undefined) this.#start();
  }

  /** Writes what can be written now, and stops trying. */
  async close(): Promise<void> {
    this.#again?.();
    this.#start();
    while (this.#writing !== undefined) await this.#writing;
    this.#again?.();
    this.#again = undefined;
  }

  #start(): void {
    this.#again = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      // A line that came when the last one had just been written.
      if (this.#waiting.length > 0 && this.#again === undefined) this.#start();
    });
  }

  async #writeAll(): Promise<void> {
    const { clock, log } = this.#options;
    try {
      // Lines that come meanwhile are written in the same run.
      while (this.#waiting.length > 0 || this.#lost > 0) await this.#writeSome();
      if (this.#problem !== undefined)
        log.info({ file: this.#file }, 'the record of changes is written again');
      this.#problem = undefined;
    } catch (err) {
      if (this.#problem === undefined)
        log.error({ file: this.#file, err }, 'the record of changes cannot be written');
      this.#problem = (err as NodeJS.ErrnoException).code ?? String(err);
      this.#again = clock.after(TRY_AGAIN_MS, () => this.#start());
    }
  }

  async #writeSome(): Promise<void> {
    const { clock, folder, limits } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const handle = await this.#open();
    let isFull = false;
    try {
      const { size } = await handle.stat();
      // The rest of a line that was broken off: by a full disk, or by the end of the daemon.
      if (size > 0 && !(await endsLine(handle, size))) await handle.appendFile('\n');
      let bytes = size;
      for (let [line] = this.#waiting; line !== undefined; [line] = this.#waiting) {
        isFull = bytes >= limits().maxBytes;
        if (isFull) break;
        await handle.appendFile(line);
        this.#waiting.shift();
        this.#waitingLength -= line.length;
        bytes += Buffer.byteLength(line);
      }
      const lost = this.#lost;
      if (!isFull && lost > 0) {
        await handle.appendFile(lineOf(clock.now(), { event: 'lost', count: lost }));
        this.#lost -= lost;
      }
    } finally {
      await handle.close();
    }
    if (isFull) await this.#rotate();
  }

  async #open(): Promise<FileHandle> {
    const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
    // eslint-disable-next-line no-bitwise
    const handle = await open(this.#file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, MODE);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new Error(`${this.#file} is no file`);
      // eslint-disable-next-line no-bitwise
      if ((stats.mode & 0o777) !== MODE) await handle.chmod(MODE);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #rotate(): Promise<void> {
    const { folder, limits } = this.#options;
    const { keep } = limits();
    const former = (await formerFiles(folder)).reverse();
    for (const { file, number } of former)
      if (number >= keep) await unlink(file);
      else await rename(file, `${this.#file}.${number + 1}`);
    await rename(this.#file, `${this.#file}.1`);
  }
}

async function endsLine(handle: FileHandle, size: number): Promise<boolean> {
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === LF;
}

/** `audit.log.1` and so on, the newest first. */
async function formerFiles(folder: string): Promise<{ readonly file: string; readonly number: number }[]> {
  const numbers = (await readdir(folder)).flatMap((name) => {
    const match = /^audit\.log\.(\d{1,4})$/.exec(name);
    return match ? [Number(match[1])] : [];
  });
  return numbers.sort((a, b) => a - b).map((number) => ({ file: join(folder, `${NAME}.${number}`), number }));
}

/** All files of the record, the oldest first. Rejects where the folder cannot be read. */
export async function recordFiles(folder: string): Promise<readonly string[]> {
  const former = await formerFiles(folder);
  return [...former.map(({ file }) => file).reverse(), join(folder, NAME)];
}
