/**
 * Reads the file that a process writes its output to: each whole line once, also what came while no daemon ran. The
 * file is another one after a start of the process, and is cut to nothing when it is large: by this, or else by who
 * keeps the process.
 */
import { open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { undefinedWhenMissing, writeWhole } from 'mountkeeper';

const LF = 10;
/** Bytes. A line that is longer is left out; no line of smbd's comes near it. */
const CHUNK = 262_144;
/** Bytes that stay once they are read. A flood brings megabytes a second; who keeps the process looks once a minute. */
const MOST_KEPT = 4 * 1_048_576;

/** How far a file has been read. */
interface Position {
  readonly inode: number;
  readonly offset: number;
}

export class OutputReader {
  readonly #noteFile: string;
  #position: Position | undefined;

  /** `noteFile`: where it is noted how far was read. */
  constructor(noteFile: string) {
    this.#noteFile = noteFile;
  }

  /** Calls back for each line since the last time. Rejects with the error of the system. One call at a time. */
  async read(file: string, take: (line: string) => void): Promise<void> {
    this.#position ??= await this.#noted();
    const former = this.#position;
    const handle = await open(file, 'r+');
    try {
      const { ino: inode, size } = await handle.stat();
      const isSame = former?.inode === inode && former.offset <= size;
      const begin = isSame ? former.offset : 0;
      let end = await readLines(handle, [begin, size], take);
      if (isSame && end === begin) return;
      const isLarge = end > MOST_KEPT;
      if (isLarge) {
        // What came meanwhile. By the handle: another file may have the name by now.
        end = await readLines(handle, [end, (await handle.stat()).size], take);
        await handle.truncate(0);
      }
      this.#position = { inode, offset: isLarge ? 0 : end };
    } finally {
      await handle.close();
    }
    await writeWhole(this.#noteFile, JSON.stringify(this.#position), { isDurable: false });
  }

  /** Undefined where nothing was read yet, or it cannot be told. */
  async #noted(): Promise<Position | undefined> {
    const text = await readFile(this.#noteFile, 'utf8').catch(undefinedWhenMissing);
    try {
      const { inode, offset } = JSON.parse(text ?? '') as Readonly<Record<string, unknown>>;
      return Number.isSafeInteger(inode) && Number.isSafeInteger(offset)
        ? { inode: inode as number, offset: offset as number }
        : undefined;
    } catch {
      // Read from the beginning, once.
      return undefined;
    }
  }
}

/** Resolves with where the last whole line ends. */
async function readLines(
  handle: FileHandle,
  [begin, size]: readonly [begin: number, size: number],
  take: (line: string) => void,
): Promise<number> {
  // Somebody else has cut it.
  if (size <= begin) return begin;
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size - begin));
  let offset = begin;
  while (offset < size) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    const end = buffer.subarray(0, bytesRead).lastIndexOf(LF);
    if (end === -1) {
      // The rest of the last line has not been written yet.
      if (bytesRead < CHUNK) break;
      offset += bytesRead;
    } else {
      for (const line of buffer.toString('utf8', 0, end).split('\n')) take(line);
      offset += end + 1;
    }
  }
  return offset;
}
