/**
 * The file that a long-lived process writes its output to. Its size is bounded: a large file is moved aside
 * at the next start, and truncated while the process runs (the process appends, so it continues at the new
 * end).
 */
import { open, rename, truncate } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

const MAX_BYTES_AT_START = 1_048_576;
const MAX_BYTES_WHILE_RUNNING = 16 * 1_048_576;
const MAX_TAIL_BYTES = 262_144;

export interface OpenedLog {
  readonly handle: FileHandle;
  /** Where the output of the process to be started begins, in bytes. */
  readonly offset: number;
}

/** Opens for appending, for the owner alone; an old one above 1 MiB becomes `<file>.1`. */
export async function openProcessLog(file: string): Promise<OpenedLog> {
  let handle = await open(file, 'a', 0o600);
  let { size } = await handle.stat();
  if (size > MAX_BYTES_AT_START) {
    await handle.close();
    await rename(file, `${file}.1`);
    handle = await open(file, 'a', 0o600);
    size = 0;
  }
  return { handle, offset: size };
}

/** Truncates a log that has grown too large under a running process; keeps its last lines in `<file>.1`. */
export async function boundProcessLog(file: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    if (size <= MAX_BYTES_WHILE_RUNNING) return;
    const last = await readRange(handle, size - MAX_BYTES_AT_START, size);
    const aside = await open(`${file}.1`, 'w', 0o600);
    try {
      await aside.writeFile(last);
    } finally {
      await aside.close();
    }
    await truncate(file, 0);
  } finally {
    await handle.close();
  }
}

/** The last lines written since `offset`; empty when the file is gone. */
export async function tailProcessLog(
  file: string,
  offset: number,
  lines: number,
): Promise<readonly string[]> {
  // Without a file there are no last lines, and their reader has more important things to tell.
  const handle = await open(file, 'r').catch(() => undefined);
  if (handle === undefined || lines <= 0) {
    await handle?.close();
    return [];
  }
  try {
    const { size } = await handle.stat();
    const start = offset <= size ? offset : 0;
    const from = Math.max(start, size - MAX_TAIL_BYTES);
    return lastLines(await readRange(handle, from, size), from > start, lines);
  } catch {
    // As above: last lines are a help, nothing stands or falls with them.
    return [];
  } finally {
    await handle.close();
  }
}

function lastLines(content: Buffer, startsInsideLine: boolean, count: number): string[] {
  const all = content
    .toString('utf8')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''));
  if (startsInsideLine && all.length > 1) all.shift();
  if (all.at(-1) === '') all.pop();
  return all.slice(-count);
}

async function readRange(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, to - from));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
