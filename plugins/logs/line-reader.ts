/** Reads consecutive lines of an indexed file. */
import type { FileHandle } from 'node:fs/promises';
import { LINES_PER_MARK, totalLines } from './index-state.ts';
import type { IndexState } from './index-state.ts';

export interface LineRequest {
  readonly skip: number;
  readonly count: number;
}

const CHUNK_BYTES = 64 * 1024;
/** Longest line; the rest is cut off, so that a line without end does not fill memory. */
const MAX_LINE_BYTES = 64 * 1024;
/** Most bytes of an answer; with very long lines it contains fewer of them. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const LF = 10;
const CR = 13;

class LineCollector {
  readonly lines: string[] = [];
  #skip: number;
  readonly #count: number;
  #parts: Buffer[] = [];
  #partBytes = 0;
  #keptBytes = 0;

  constructor(request: LineRequest) {
    this.#skip = request.skip;
    this.#count = request.count;
  }

  get isFull(): boolean {
    return this.lines.length >= this.#count || this.#keptBytes > MAX_ANSWER_BYTES;
  }

  take(chunk: Buffer): void {
    let from = 0;
    while (!this.isFull) {
      const end = chunk.indexOf(LF, from);
      if (end === -1) break;
      this.#append(chunk.subarray(from, end));
      this.#endLine(true);
      from = end + 1;
    }
    if (!this.isFull) this.#append(chunk.subarray(from));
  }

  /** The last line, when the file does not end with LF. */
  finish(): void {
    if (this.#partBytes > 0 && !this.isFull) this.#endLine(false);
  }

  #append(part: Buffer): void {
    const room = MAX_LINE_BYTES + 1 - this.#partBytes;
    if (this.#skip > 0 || part.length === 0 || room <= 0) {
      this.#partBytes += part.length;
      return;
    }
    // A copy, because the chunk's memory is reused for the next one.
    this.#parts.push(Buffer.from(part.subarray(0, room)));
    this.#partBytes += part.length;
  }

  #endLine(terminated: boolean): void {
    if (this.#skip > 0) this.#skip -= 1;
    else this.lines.push(this.#text(terminated));
    this.#parts = [];
    this.#partBytes = 0;
  }

  #text(terminated: boolean): string {
    const bytes = Buffer.concat(this.#parts);
    const isCut = this.#partBytes > MAX_LINE_BYTES;
    const kept = isCut ? bytes.subarray(0, MAX_LINE_BYTES) : bytes;
    const endsWithCr = terminated && !isCut && kept.at(-1) === CR;
    this.#keptBytes += kept.length;
    return `${(endsWithCr ? kept.subarray(0, -1) : kept).toString('utf8')}${isCut ? '…' : ''}`;
  }
}

export async function readLines(
  handle: FileHandle,
  state: IndexState,
  request: LineRequest,
): Promise<readonly string[]> {
  const count = Math.min(request.count, totalLines(state) - request.skip);
  if (count <= 0) return [];
  const mark = Math.floor(request.skip / LINES_PER_MARK);
  const collector = new LineCollector({ skip: request.skip - mark * LINES_PER_MARK, count });
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let at = state.marks[mark] ?? 0;
  while (at < state.bytes && !collector.isFull) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(CHUNK_BYTES, state.bytes - at), at);
    if (bytesRead === 0) break;
    collector.take(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  collector.finish();
  return collector.lines;
}
