/**
 * A sparse index of the lines of a growing file: the offset of every 1,024th line. Built once; after that
 * only appended bytes are read, so a poll of a 1 GB file costs as much as one of a small file. Rotation
 * starts it again.
 * A line ends with LF, a CR before it is dropped, and a last line without LF counts.
 */
import { createSerialQueue } from 'mountkeeper';
import type { FileHandle } from 'node:fs/promises';
import { LINES_PER_MARK, totalLines } from './index-state.ts';
import type { IndexState } from './index-state.ts';
import { readLines } from './line-reader.ts';
import type { LineRequest } from './line-reader.ts';

const CHUNK_BYTES = 1024 * 1024;
const FINGERPRINT_BYTES = 64;
const LF = 10;

export interface LinePage {
  readonly totalLines: number;
  readonly entries: readonly string[];
}

export interface LineIndex {
  /**
   * `choose` gets the number of lines and returns which of them are wanted. Rejects when the file cannot be
   * read.
   */
  read(choose: (totalLines: number) => LineRequest): Promise<LinePage>;
}

async function readAt(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}

/**
 * The first and the last bytes of the indexed part: they show when a file was replaced, or truncated and
 * has grown again.
 */
async function fingerprintOf(handle: FileHandle, bytes: number): Promise<Buffer> {
  const head = await readAt(handle, 0, Math.min(FINGERPRINT_BYTES, bytes));
  const tail = await readAt(handle, Math.max(0, bytes - FINGERPRINT_BYTES), bytes);
  return Buffer.concat([head, tail]);
}

/** Counts the line ends of one chunk and marks every 1,024th line's first byte. */
function scanChunk(chunk: Buffer, offset: number, found: { newlines: number; marks: number[] }): void {
  for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, at + 1)) {
    found.newlines += 1;
    if (found.newlines % LINES_PER_MARK === 0) found.marks.push(offset + at + 1);
  }
}

async function scan(handle: FileHandle, before: IndexState, size: number): Promise<IndexState> {
  const found = { newlines: before.newlines, marks: [] as number[] };
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - before.bytes));
  let bytes = before.bytes;
  let { isLastOpen } = before;
  while (bytes < size) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, size - bytes), bytes);
    if (bytesRead === 0) break;
    scanChunk(buffer.subarray(0, bytesRead), bytes, found);
    isLastOpen = buffer[bytesRead - 1] !== LF;
    bytes += bytesRead;
  }
  const fingerprint = await fingerprintOf(handle, bytes);
  // Not earlier, because a scan that fails half-way must not change what others read.
  for (const mark of found.marks) before.marks.push(mark);
  return { ...before, bytes, newlines: found.newlines, isLastOpen, fingerprint };
}

function emptyState(identity: string): IndexState {
  return { identity, marks: [0], bytes: 0, newlines: 0, isLastOpen: false, fingerprint: Buffer.alloc(0) };
}

async function isContinued(
  handle: FileHandle,
  state: IndexState,
  file: { identity: string; size: number },
): Promise<boolean> {
  if (state.identity !== file.identity || file.size < state.bytes) return false;
  return state.fingerprint.equals(await fingerprintOf(handle, state.bytes));
}

/** `open` is called for every reading; the handle is closed here. */
export function createLineIndex(open: () => Promise<FileHandle>): LineIndex {
  let known = emptyState('');
  const queue = createSerialQueue();

  async function refresh(handle: FileHandle): Promise<IndexState> {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error('the log is no regular file');
    const identity = `${stat.dev}:${stat.ino}`;
    const base = (await isContinued(handle, known, { identity, size: stat.size }))
      ? known
      : emptyState(identity);
    known = base.bytes === stat.size ? base : await scan(handle, base, stat.size);
    return known;
  }

  /** One scan at a time: requests during the first scan wait for it instead of scanning as well. */
  function refreshInTurn(handle: FileHandle): Promise<IndexState> {
    return queue.run(() => refresh(handle));
  }

  return {
    async read(choose) {
      const handle = await open();
      try {
        const state = await refreshInTurn(handle);
        const total = totalLines(state);
        return { totalLines: total, entries: await readLines(handle, state, choose(total)) };
      } finally {
        await handle.close();
      }
    },
  };
}
