/**
 * The bodies of small uploads, kept until they are in their share: one may have to be sent once more. A backend keeps
 * the first 100 KiB itself before it opens the file, and may not be able to then.
 */
import type { IncomingMessage } from 'node:http';

const LARGEST_BYTES = 131_072;
/** For all uploads together, however many clients are slow: what does not fit in is sent once only. */
const ALL_BYTES = 16 * 1_048_576;

/** One body. It holds its room until it is released. */
export interface KeptBody {
  /** Copies the next piece. */
  take(piece: Buffer): void;
  /** All that was taken; undefined when that was too much. */
  readonly bytes: Buffer | undefined;
  release(): void;
}

export class KeptBodies {
  #freeBytes = ALL_BYTES;

  /** Undefined for what is too large, or where there is no more room. */
  keep({ headers }: IncomingMessage): KeptBody | undefined {
    // Without a length it may become as large as any.
    const size = Number(headers['content-length'] ?? LARGEST_BYTES);
    if (!(size <= LARGEST_BYTES && size <= this.#freeBytes)) return undefined;
    this.#freeBytes -= size;
    // Copied: pieces may be tiny ones of large buffers.
    const room = Buffer.allocUnsafeSlow(size);
    let taken = 0;
    return {
      take: (piece) => {
        if (taken + piece.length <= size) piece.copy(room, taken);
        taken += piece.length;
      },
      get bytes() {
        return taken <= size ? room.subarray(0, taken) : undefined;
      },
      release: () => void (this.#freeBytes += size),
    };
  }
}
