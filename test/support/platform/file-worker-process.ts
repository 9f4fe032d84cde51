/**
 * Runs as a child process: the only place in the tests that touches paths below a mount, so that a mount
 * which hangs hangs this child and never the test. Each request is `{ id, op, … }`; ledgers are written
 * outside of the mount.
 */
import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { timedWork } from './run-queue.ts';
import type { FileRequest, WriteRequest } from './file-requests.ts';

const stopped = new Set<number>();

async function checksum(path: string): Promise<{ sha256: string; bytes: number; ms: number }> {
  const start = performance.now();
  const file = await open(path);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of file.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })) {
      hash.update(piece as Buffer);
      bytes += (piece as Buffer).length;
    }
    return { sha256: hash.digest('hex'), bytes, ms: performance.now() - start };
  } finally {
    await file.close();
  }
}

async function writeOne(path: string, bytes: number, pieceDelayMs: number): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'w');
  try {
    await writePieces(file, hash, { bytes, pieceDelayMs });
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
  await file.close();
  return hash.digest('hex');
}

async function writePieces(
  file: FileHandle,
  hash: { update(piece: Buffer): unknown },
  want: { bytes: number; pieceDelayMs: number },
): Promise<void> {
  for (let written = 0; written < want.bytes;) {
    const piece = randomBytes(Math.min(256 * 1024, want.bytes - written));
    hash.update(piece);
    // Node's write may be short; what it took is what counts.
    let offset = 0;
    while (offset < piece.length) offset += (await file.write(piece, offset)).bytesWritten;
    written += piece.length;
    if (want.pieceDelayMs > 0) await sleep(want.pieceDelayMs);
  }
}

/**
 * Writes file after file; a line in the ledger for each whose close() succeeded, and for each that failed.
 */
async function writeMany(id: number, request: WriteRequest): Promise<{ written: number; failed: number }> {
  const tally = { written: 0, failed: 0 };
  for (let index = 0; index < request.count && !stopped.has(id); index += 1) {
    const name = `${request.prefix ?? 'file'}-${String(index).padStart(5, '0')}.bin`;
    try {
      const sha256 = await writeOne(join(request.dir, name), request.bytes, request.pieceDelayMs ?? 0);
      appendFileSync(request.ledger, `ok ${sha256} ${name}\n`);
      tally.written += 1;
    } catch (error) {
      appendFileSync(
        request.ledger,
        `failed ${(error as NodeJS.ErrnoException).code ?? 'unknown'} ${name}\n`,
      );
      tally.failed += 1;
      await sleep(20);
    }
    if ((request.pauseMs ?? 0) > 0) await sleep(request.pauseMs);
  }
  return tally;
}

/** Holds a file open and reads pieces of it all the time, as a player would; counts what failed. */
async function holdOpen(id: number, path: string): Promise<{ reads: number; failures: string[] }> {
  const tally = { reads: 0, failures: [] as string[] };
  const file = await open(path);
  const buffer = Buffer.alloc(64 * 1024);
  const { size } = await file.stat();
  while (!stopped.has(id)) {
    try {
      await file.read(
        buffer,
        0,
        buffer.length,
        Math.floor(Math.random() * Math.max(1, size - buffer.length)),
      );
      tally.reads += 1;
    } catch (error) {
      tally.failures.push(`${(error as NodeJS.ErrnoException).code} after ${tally.reads} reads`);
    }
    await sleep(20);
  }
  await file.close().catch(() => undefined);
  return tally;
}

/** Opens and reads a file anew, again and again; counts what failed or differed. */
async function readAgain(
  id: number,
  path: string,
  sha256: string,
): Promise<{ reads: number; failures: string[] }> {
  const tally = { reads: 0, failures: [] as string[] };
  while (!stopped.has(id)) {
    try {
      if ((await checksum(path)).sha256 !== sha256) tally.failures.push('other content');
      tally.reads += 1;
    } catch (error) {
      tally.failures.push(`${(error as NodeJS.ErrnoException).code} after ${tally.reads} reads`);
    }
    await sleep(20);
  }
  return tally;
}

const held = new Map<number, FileHandle>();

/** Opens a file for writing and leaves it open until `release`. */
async function holdForWriting(id: number, path: string, bytes: number): Promise<Record<string, never>> {
  const file = await open(path, 'w');
  await file.write(randomBytes(bytes));
  held.set(id, file);
  return {};
}

async function releaseHeld(target: number): Promise<Record<string, never>> {
  const file = held.get(target);
  held.delete(target);
  await file?.close();
  return {};
}

async function carryOut(id: number, request: FileRequest): Promise<unknown> {
  switch (request.op) {
    case 'checksum':
      return checksum(request.path);
    case 'write':
      return { sha256: await writeOne(request.path, request.bytes, request.pieceDelayMs ?? 0) };
    case 'write-many':
      return writeMany(id, request);
    case 'hold-open':
      return holdOpen(id, request.path);
    case 'read-again':
      return readAgain(id, request.path, request.sha256);
    case 'hold-for-writing':
      return holdForWriting(id, request.path, request.bytes);
    case 'release':
      return releaseHeld(request.target);
    default:
      return folderWork(request);
  }
}

async function folderWork(request: FileRequest): Promise<unknown> {
  switch (request.op) {
    case 'list':
      return readdir(request.path);
    case 'mkdir':
      return mkdir(request.path, { recursive: true });
    case 'rmdir':
      return rmdir(request.path);
    case 'unlink':
      return unlink(request.path);
    case 'time-reading':
      return timedWork(request.server, () => readFileSync(request.path));
    case 'time-listing':
      return timedWork(request.server, () => readdirSync(request.path));
    case 'size':
      return (await stat(request.path)).size;
    default:
      throw new Error(`no such request: ${request.op}`);
  }
}

process.on('message', (message: { id: number; stop?: true; request?: FileRequest }) => {
  if (message.stop === true || message.request === undefined) {
    stopped.add(message.id);
    return;
  }
  carryOut(message.id, message.request).then(
    (result) => process.send?.({ id: message.id, result: result ?? null }),
    (error: NodeJS.ErrnoException) =>
      process.send?.({ id: message.id, error: error.message, code: error.code ?? '' }),
  );
});
process.on('disconnect', () => process.exit(0));
