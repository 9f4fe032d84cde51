/**
 * What a file begins with: what a broken-off upload has left is told by it from what others have put there meanwhile,
 * over SMB, say, where times cannot tell them apart.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { BackendCall } from '../backend.ts';

const MOST_BYTES = 4_096;

/** The first 4 KiB of what is in memory, without holding on to the rest. */
export function firstOfBytes(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, MOST_BYTES));
}

/**
 * The first 4 KiB of a body, or all of a shorter one; the message stays to be read as a whole. Undefined when the
 * connection ends first.
 */
export function firstOf(message: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    if (message.destroyed) return resolve(undefined);
    // Who listens for what may be read ends an empty message.
    if (message.complete && message.readableLength === 0) return resolve(Buffer.alloc(0));
    const enough = Math.min(MOST_BYTES, message.readableHighWaterMark);
    const finish = (first: Buffer | undefined): void => {
      message.off('readable', look).off('close', leave);
      resolve(first);
    };
    const leave = (): void => finish(undefined);
    const look = (): void => {
      if (message.readableLength < enough && !message.complete) return;
      // Not read when there is nothing: its end would be told to nobody.
      const there = message.readableLength > 0 ? (message.read() as Buffer | null) : null;
      if (there) message.unshift(there);
      finish(firstOfBytes(there ?? Buffer.alloc(0)));
    };
    message.on('readable', look).once('close', leave);
  });
}

/** The first 4 KiB of a file of this machine, which is no link. */
export async function firstOfFile(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_BYTES), 0, MOST_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Which file of a share is meant. */
interface Shared {
  /** In the backend's notation. */
  readonly path: string;
  readonly host: string;
  /** How many there are. */
  readonly bytes: number;
}

/**
 * Whether a file of a share is no more than a beginning of what has these first bytes, as far as they go. An empty
 * one is: there is nothing in it to lose. `mayBeZeros`: after a power cut a file may hold zeros for what had not come
 * to the disk. Rejects when it cannot be read.
 */
export async function beginsAs(
  first: Buffer,
  { path, host, bytes }: Shared,
  {
    ask,
    mayBeZeros = false,
  }: {
    readonly ask: (call: BackendCall) => Promise<IncomingMessage>;
    readonly mayBeZeros?: boolean | undefined;
  },
): Promise<boolean> {
  if (bytes === 0) return true;
  const count = Math.min(bytes, first.length);
  if (count === 0) return false;
  const headers = { host, range: `bytes=0-${count - 1}` };
  const answered = await ask({ method: 'GET', path, headers });
  const { statusCode = 0 } = answered;
  const there = await upTo(count, answered);
  if (statusCode !== 200 && statusCode !== 206) throw new Error(`the backend answered ${statusCode}`);
  return (
    there.length === count &&
    there.every((byte, index) => byte === first[index] || (mayBeZeros && byte === 0))
  );
}

/** A backend may not know of ranges: no more is read of a whole file than this. */
async function upTo(count: number, message: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of message as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > count) break;
  }
  return Buffer.concat(pieces).subarray(0, count);
}
