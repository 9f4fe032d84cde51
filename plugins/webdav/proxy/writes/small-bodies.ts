/**
 * Small bodies are received as a whole before a backend hears of them: rclone's server keeps the first 100 KiB of a
 * body, and opens its file at the very end when less came. What a client has broken off by then would go over what
 * others have put there meanwhile.
 */
import type { IncomingMessage } from 'node:http';

const LARGEST_BYTES = 131_072;
/** For all uploads together, however many clients are slow: what does not fit in is streamed. */
const ALL_BYTES = 16 * 1_048_576;
const LEAST_BYTES = 4_096;

/** All of one body. It holds its room until it is released. */
export interface SmallBody {
  readonly bytes: Buffer;
  readonly release: () => void;
}

export class SmallBodies {
  #freeBytes = ALL_BYTES;

  /**
   * A body of up to 128 KiB, once all of it has come. Undefined when there is more of it, or no more room: the message
   * stays to be read from its beginning; or when its connection has ended.
   */
  collect(message: IncomingMessage): Promise<SmallBody | undefined> {
    return new Promise((resolve) => {
      if (message.destroyed) return resolve(undefined);
      let room: Buffer = Buffer.alloc(0);
      let count = 0;
      const release = (): void => void (this.#freeBytes += room.length);
      const finish = (body?: SmallBody): void => {
        message.off('readable', read).off('end', end).off('close', leave);
        if (!body) release();
        resolve(body);
      };
      const leave = (): void => finish();
      const end = (): void =>
        finish(message.complete ? { bytes: room.subarray(0, count), release } : undefined);
      const read = (): void => {
        const piece = message.read() as Buffer | null;
        if (!piece) return;
        const wider = this.#widen(room, count + piece.length);
        if (!wider) {
          message.unshift(Buffer.concat([room.subarray(0, count), piece]));
          return finish();
        }
        room = wider;
        // Copied: pieces may be tiny ones of large buffers.
        piece.copy(room, count);
        count += piece.length;
      };
      message.on('readable', read).once('end', end).once('close', leave);
    });
  }

  /** A room for so many bytes that begins as this one; undefined where there is none. */
  #widen(room: Buffer, bytes: number): Buffer | undefined {
    if (bytes <= room.length) return room;
    const size = Math.min(Math.max(bytes, 2 * room.length, LEAST_BYTES), LARGEST_BYTES);
    if (bytes > size || size - room.length > this.#freeBytes) return undefined;
    this.#freeBytes -= size - room.length;
    const wider = Buffer.allocUnsafeSlow(size);
    room.copy(wider);
    return wider;
  }
}
