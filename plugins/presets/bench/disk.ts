/** How fast the disk of the cache takes what it must keep. */
import { randomBytes, randomUUID } from 'node:crypto';
import { open, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from 'mountkeeper';

const MIB = 1_048_576;
const BYTES = 64 * MIB;
const SPARE_BYTES = 256 * MIB;
const SMALL_BYTES = 4_096;
const SMALL_WRITES = 20;

export interface DiskFigures {
  /** Written in one go and kept: what a large file takes. */
  readonly bytesPerSecond: number;
  /** Until 4 KiB are on the disk, in milliseconds; the middle one of twenty. */
  readonly smallMs: number;
}

/** Rejects with a sentence where there is no room, or as the file system does. */
export async function measureDisk(folder: string, clock: Clock): Promise<DiskFigures> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < BYTES + SPARE_BYTES)
    throw new Error(`${folder} has too little room to be measured: ${BYTES / MIB} MiB are written there`);
  const file = join(folder, `.mountkeeper-bench-${randomUUID()}`);
  const handle = await open(file, 'wx', 0o600);
  try {
    // Without a name it goes with this process, however that ends.
    await unlink(file);
    const piece = randomBytes(MIB);
    const began = clock.monotonic();
    for (let at = 0; at < BYTES; at += MIB) await handle.write(piece);
    await handle.datasync();
    const ms = Math.max(1, clock.monotonic() - began);
    const small: number[] = [];
    for (let count = 0; count < SMALL_WRITES; count += 1) {
      const from = clock.monotonic();
      await handle.write(piece, 0, SMALL_BYTES);
      await handle.datasync();
      small.push(clock.monotonic() - from);
    }
    small.sort((one, other) => one - other);
    return { bytesPerSecond: (BYTES * 1_000) / ms, smallMs: small[SMALL_WRITES / 2] ?? 0 };
  } finally {
    await handle.close();
  }
}
