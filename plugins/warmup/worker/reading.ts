import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { BackPressure } from './back-pressure.ts';

/** Size of one read, and the distance between two sample reads in a large file. */
const PIECE_BYTES = 1_048_576;
const LOOK_BYTES = 4_096;
/** Bytes of a large file that are read before others get a turn. */
const SLICE_BYTES = 8 * PIECE_BYTES;

export interface Reading {
  readonly file: string;
  readonly bytes: number;
  readonly backPressure: BackPressure;
  readonly openFlags: number;
  /** Reads every byte, because sample reads were not enough. */
  readonly isThorough: boolean;
}

/**
 * Makes the mount fetch a whole file. Of a large file, only a small piece per mebibyte is read: the mount
 * fetches everything between, without passing it through the kernel. The cache shows whether it is
 * complete.
 */
export async function readThrough(reading: Reading): Promise<void> {
  const { bytes, backPressure } = reading;
  const file = new Reopened(reading.file, reading.openFlags);
  const buffer = Buffer.allocUnsafe(
    bytes > PIECE_BYTES && !reading.isThorough ? LOOK_BYTES : Math.max(1, Math.min(PIECE_BYTES, bytes)),
  );
  try {
    for (let at = 0; at < bytes; at += SLICE_BYTES) {
      // The mount would go on reading ahead of an open file while others read.
      if (backPressure.isBusy) await file.close();
      await backPressure.turn(() => readSlice(file, buffer, at, Math.min(bytes, at + SLICE_BYTES)));
    }
  } finally {
    await file.close();
  }
}

async function readSlice(file: Reopened, buffer: Buffer, from: number, to: number): Promise<void> {
  const handle = await file.handle();
  for (let at = from; at < to; at += PIECE_BYTES)
    await readAt(handle, buffer, at, Math.min(buffer.length, to - at));
  // The last byte: everything before it is cached or being fetched.
  if (buffer.length === LOOK_BYTES) await readAt(handle, buffer, to - 1, 1);
}

async function readAt(handle: FileHandle, buffer: Buffer, position: number, length: number): Promise<void> {
  for (let done = 0; done < length;) {
    const { bytesRead } = await handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw new Error('the file is shorter than the remote said');
    done += bytesRead;
  }
}

class Reopened {
  readonly #path: string;
  readonly #flags: number;
  #handle: FileHandle | undefined;

  constructor(path: string, flags: number) {
    this.#path = path;
    this.#flags = flags;
  }

  async handle(): Promise<FileHandle> {
    this.#handle ??= await open(this.#path, this.#flags);
    return this.#handle;
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}
