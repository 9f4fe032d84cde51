import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Refused } from '../exchange.ts';
import { at } from '../places.ts';

/** Up to this size a body is sent to the backend's socket in one piece, so that nothing can interrupt it. */
export const IN_MEMORY_BYTES = 65_536;
/** Bytes that may arrive while the disk is being written. */
const AHEAD_BYTES = 2 * 1_048_576;
const LOOK_AT_ROOM_BYTES = 64 * 1_048_576;
export const NO_ROOM = 'There is no room for this file on the cache disk.';

export type Spooled = { readonly bytes: Buffer } | { readonly file: string; readonly size: number };

/** Bytes that may still be written. */
export async function roomIn(folder: string, minFreeBytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(at(folder));
  return bavail * bsize - minFreeBytes;
}

/**
 * Watches the free space while a body of unknown length is streamed to a backend, whose cache is on that
 * disk.
 */
export class RoomWatch {
  readonly #spool: () => { readonly folder: string; readonly minFreeBytes: number };
  readonly #full = new AbortController();
  #unseen = 0;

  constructor(spool: () => { readonly folder: string; readonly minFreeBytes: number }) {
    this.#spool = spool;
  }

  /** Aborts when there is no more space. */
  get full(): AbortSignal {
    return this.#full.signal;
  }

  took(bytes: number): void {
    this.#unseen += bytes;
    if (this.#unseen < LOOK_AT_ROOM_BYTES) return;
    this.#unseen = 0;
    const { folder, minFreeBytes } = this.#spool();
    void roomIn(folder, minFreeBytes).then(
      (room) => room < 0 && this.#full.abort(),
      () => undefined,
    );
  }
}

/** Receives a whole body. Undefined when the client disconnected: then nothing of it is kept. */
export async function receive(
  request: IncomingMessage,
  folder: string,
  minFreeBytes: number,
): Promise<Spooled | undefined> {
  const spool = new Spool(folder, minFreeBytes);
  try {
    for await (const piece of whole(request)) await spool.take(piece);
    return await spool.finish();
  } catch (error) {
    await spool.discard();
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') throw new Refused(507, NO_ROOM);
    if (error instanceof TornOff) return undefined;
    throw error;
  }
}

/** A body that is being received: in memory first, on disk once it is large. */
class Spool {
  readonly #folder: string;
  readonly #minFreeBytes: number;
  readonly #pieces: Buffer[] = [];
  #size = 0;
  #roomSeenAt = 0;
  #file: string | undefined;
  #sink: WriteStream | undefined;
  #failure: Error | undefined;

  constructor(folder: string, minFreeBytes: number) {
    this.#folder = folder;
    this.#minFreeBytes = minFreeBytes;
  }

  /** The next piece may arrive while this one is being written. */
  async take(piece: Buffer): Promise<void> {
    this.#size += piece.length;
    this.#pieces.push(piece);
    if (this.#size <= IN_MEMORY_BYTES) return;
    const sink = this.#sink ?? this.#open();
    const isFull = this.#pieces
      .splice(0)
      .map((one) => sink.write(one))
      .includes(false);
    if (isFull && !this.#failure) await Promise.race([once(sink, 'drain'), once(sink, 'close')]);
    if (this.#failure) throw this.#failure;
    if (this.#size - this.#roomSeenAt < LOOK_AT_ROOM_BYTES) return;
    this.#roomSeenAt = this.#size;
    if ((await roomIn(this.#folder, this.#minFreeBytes)) < 0) throw new Refused(507, NO_ROOM);
  }

  async finish(): Promise<Spooled> {
    await this.#close();
    if (this.#failure) throw this.#failure;
    return this.#file === undefined
      ? { bytes: Buffer.concat(this.#pieces) }
      : { file: this.#file, size: this.#size };
  }

  async discard(): Promise<void> {
    await this.#close();
    if (this.#file !== undefined) await rm(at(this.#file), { force: true });
  }

  #open(): WriteStream {
    this.#file = join(this.#folder, `${randomUUID()}.part`);
    // On the disk when it is closed: the note that it is to be put in place is there, too, after a power cut.
    const options = { flags: 'wx', mode: 0o600, highWaterMark: AHEAD_BYTES, flush: true };
    this.#sink = createWriteStream(at(this.#file), options);
    this.#sink.on('error', (error) => (this.#failure = error));
    return this.#sink;
  }

  async #close(): Promise<void> {
    const sink = this.#sink;
    this.#sink = undefined;
    if (!sink || sink.closed) return;
    sink.end();
    // Its failure is kept and told by whoever writes.
    await once(sink, 'close').catch(() => undefined);
  }
}

class TornOff extends Error {}

/**
 * The pieces of the body; throws when the client disconnects before the end. The request stays open when
 * the reader stops early.
 */
async function* whole(request: IncomingMessage): AsyncGenerator<Buffer> {
  const iterator = request.iterator({ destroyOnReturn: false });
  try {
    for await (const piece of iterator) yield piece as Buffer;
  } catch (error) {
    throw new TornOff('the client went away', { cause: error });
  }
  if (!request.complete) throw new TornOff('the client went away');
}

/**
 * Removes incomplete bodies that a killed proxy left, not those of these names: the folder may have another path than
 * when they were noted. Without names nobody knows which are wanted.
 */
export async function prepareSpool(folder: string, wanted: ReadonlySet<string> | undefined): Promise<void> {
  await mkdir(at(folder), { recursive: true, mode: 0o700 });
  if (!wanted) return;
  for (const name of await readdir(at(folder))) {
    if (name.endsWith('.part') && !wanted.has(name)) await rm(at(join(folder, name)), { force: true });
  }
}
