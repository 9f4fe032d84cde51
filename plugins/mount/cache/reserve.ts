import { randomBytes } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rest } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import { freeBytes } from './free-bytes.ts';

const RESERVE_FILE = 'reserve';
const TRY_AGAIN_MS = 5_000;
const RESERVE_BYTES = 2_097_152;
/** Below this the reserve is released at a mount, and not taken again. */
const SCARCE_BELOW_BYTES = 16 * RESERVE_BYTES;

/**
 * Reserved space in a cache folder for the time when its disk is full. A start of rclone and of the overlay
 * writes: without space the share could not be mounted, and the files that fill the disk could never be uploaded.
 */
export async function releaseReserve(cacheDir: string): Promise<void> {
  const free = await freeBytes(cacheDir).catch((error: NodeJS.ErrnoException) => {
    // A new share has no cache folder yet.
    if (error.code === 'ENOENT') return Infinity;
    throw error;
  });
  if (free < SCARCE_BELOW_BYTES) await rm(join(cacheDir, RESERVE_FILE), { force: true });
}

/** True once the reserve exists. */
export async function keepReserve(cacheDir: string, freeNow: number): Promise<boolean> {
  const file = join(cacheDir, RESERVE_FILE);
  // Not there.
  const found = await stat(file).catch(() => undefined);
  if (found?.size === RESERVE_BYTES) return true;
  if (freeNow < SCARCE_BELOW_BYTES) return false;
  try {
    // Random bytes, because file systems that compress would reserve nothing for zeros.
    await writeFile(file, await promisify(randomBytes)(RESERVE_BYTES), {
      mode: 0o600,
    });
    return true;
  } catch {
    // No room: there is no reserve then, and the next look tries again.
    // A part of it that stays is overwritten by the next try.
    await rm(file, { force: true }).catch(() => undefined);
    return false;
  }
}

/** Resolves once the reserve exists, or `end` aborts; never rejects. */
export async function reserveWhenThereIsRoom(
  cacheDir: string,
  clock: Clock,
  end: AbortSignal,
): Promise<void> {
  while (!end.aborted) {
    // Unknown counts as no room.
    if (await keepReserve(cacheDir, await freeBytes(cacheDir).catch(() => 0))) return;
    await rest(clock, TRY_AGAIN_MS, end);
  }
}
