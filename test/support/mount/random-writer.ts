/**
 * A child that writes through a mount in all the ways programs do, and tells on standard output what it saw:
 * `begin PATH` before, `done PATH SHA256|-` after the last call on a file came back without an error. Ends
 * when its input does.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs';

const root = process.argv[2] ?? '';
const PAUSES = Number(process.argv[3] ?? 0);
const FILES = 24;
/** What is known to be in a file: only of those whose last operation succeeded. */
const contents = new Map<string, Buffer>();

const say = (line: string): void => void writeSync(1, `${line}\n`);
const sum = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

function content(): Buffer {
  const bytes = randomBytes(Math.floor(10 ** (Math.random() * 6.3)));
  // Zeros at the end and in the middle are content, too.
  if (randomInt(3) === 0) bytes.fill(0, Math.floor(bytes.length * Math.random()));
  if (randomInt(4) === 0) bytes.fill(0, Math.floor(bytes.length / 3), Math.floor(bytes.length / 2));
  return bytes;
}

function put(path: string, flags: string, bytes: Buffer, position: number | null = null): void {
  const fd = openSync(`${root}/${path}`, flags);
  try {
    for (let at = 0; at < bytes.length; at += 65_536) {
      writeSync(fd, bytes, at, Math.min(65_536, bytes.length - at), position === null ? null : position + at);
    }
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
  closeSync(fd);
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // The write before it told already.
  }
}

const WAYS: Readonly<Record<string, (path: string, old: Buffer | undefined) => Buffer | undefined>> = {
  overwrite: (path) => {
    const bytes = content();
    put(path, 'w', bytes);
    return bytes;
  },
  replace: (path) => {
    const bytes = content();
    put(`${path}.tmp`, 'w', bytes);
    renameSync(`${root}/${path}.tmp`, `${root}/${path}`);
    return bytes;
  },
  edit: (path, old) => {
    if (!old || old.length < 10) return WAYS['overwrite']?.(path, old);
    const piece = content().subarray(0, Math.floor(old.length / 2));
    const position = randomInt(old.length - piece.length + 1);
    put(path, 'r+', piece, position);
    return Buffer.concat([old.subarray(0, position), piece, old.subarray(position + piece.length)]);
  },
  append: (path, old) => {
    if (!old) return WAYS['overwrite']?.(path, old);
    const piece = content();
    put(path, 'a', piece);
    return Buffer.concat([old, piece]);
  },
  cut: (path, old) => {
    if (!old || old.length < 2) return WAYS['overwrite']?.(path, old);
    const fd = openSync(`${root}/${path}`, 'r+');
    ftruncateSync(fd, Math.floor(old.length / 2));
    closeSync(fd);
    return old.subarray(0, Math.floor(old.length / 2));
  },
  read: (path, old) => {
    const seen = readFileSync(`${root}/${path}`);
    if (old && !seen.equals(old))
      say(`wrong ${path} ${sum(seen)} ${seen.length} instead of ${sum(old)} ${old.length}`);
    return old;
  },
  remove: (path, old) => {
    if (old) unlinkSync(`${root}/${path}`);
    return undefined;
  },
};
const NAMES = ['overwrite', 'overwrite', 'replace', 'replace', 'edit', 'append', 'cut', 'read', 'remove'];

/**
 * One operation on one file. False when it failed: what the file holds is unknown then, until it is written
 * anew.
 */
function operate(path: string, way: string): boolean {
  const old = contents.get(path);
  if (way === 'read' && !old) return true;
  say(`begin ${path} ${way}`);
  contents.delete(path);
  try {
    const now = WAYS[way]?.(path, old);
    if (now) contents.set(path, now);
    say(`done ${path} ${now ? sum(now) : '-'}`);
    return true;
  } catch {
    return false;
  }
}

async function run(): Promise<void> {
  let ended = false;
  process.stdin.on('end', () => (ended = true)).resume();
  while (!ended) {
    const isDone = operate(`f${randomInt(FILES)}`, NAMES[randomInt(NAMES.length)] ?? 'overwrite');
    const pauseMs = isDone ? (Math.random() < PAUSES ? randomInt(60) : 0) : 10;
    await new Promise((resolve) => (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)));
  }
}

await run();
