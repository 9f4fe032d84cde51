import { randomBytes } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freeBytes } from './free-bytes.ts';

const RESERVE_FILE = 'reserve';
const RESERVE_BYTES = 2_097_152;
/** Below this it is given up at a mount, and not taken anew. */
const SCARCE_BELOW_BYTES = 16 * RESERVE_BYTES;

/**
 * Room in a cache folder for the time when its disk is full. Mending a cache after a kill writes, and so does
 * rclone's start: without room the share could not be mounted, and what fills the disk could never go up.
 */
export async function releaseReserve(cacheDir: string): Promise<void> {
  const free = await freeBytes(cacheDir).catch((error: NodeJS.ErrnoException) => {
    // A share that is new.
    if (error.code === 'ENOENT') return Infinity;
    throw error;
  });
  if (free < SCARCE_BELOW_BYTES) await rm(join(cacheDir, RESERVE_FILE), { force: true });
}

/** True once it is there. */
export async function keepReserve(cacheDir: string, freeNow: number): Promise<boolean> {
  const file = join(cacheDir, RESERVE_FILE);
  const found = await stat(file).catch(() => undefined);
  if (found?.size === RESERVE_BYTES) return true;
  if (freeNow < SCARCE_BELOW_BYTES) return false;
  try {
    // Random, since file systems that compress would keep no room for zeros.
    await writeFile(file, await promisify(randomBytes)(RESERVE_BYTES), { mode: 0o600 });
    return true;
  } catch {
    await rm(file, { force: true }).catch(() => undefined);
    return false;
  }
}
