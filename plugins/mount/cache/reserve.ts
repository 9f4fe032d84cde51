import { keepReserve, releaseReserve, rest } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import { freeBytes } from './free-bytes.ts';

const TRY_AGAIN_MS = 5_000;
/** Below this the reserve is released at a mount, and not taken again. */
const SCARCE_BELOW_BYTES = 32 * 1_048_576;

/**
 * Reserved space in a cache folder for the time when its disk is full. A start of rclone and of the overlay
 * writes: without space the share could not be mounted, and the files that fill the disk could never be uploaded.
 */
export async function releaseForMount(cacheDir: string): Promise<void> {
  const free = await freeBytes(cacheDir).catch((error: NodeJS.ErrnoException) => {
    // A new share has no cache folder yet.
    if (error.code === 'ENOENT') return Infinity;
    throw error;
  });
  if (free < SCARCE_BELOW_BYTES) await releaseReserve(cacheDir);
}

/** Resolves once the reserve exists, or `end` aborts; never rejects. */
export async function reserveWhenThereIsRoom(
  cacheDir: string,
  clock: Clock,
  end: AbortSignal,
): Promise<void> {
  while (!end.aborted) {
    // Unknown counts as no room.
    const free = await freeBytes(cacheDir).catch(() => 0);
    if (free >= SCARCE_BELOW_BYTES && (await keepReserve(cacheDir))) return;
    await rest(clock, TRY_AGAIN_MS, end);
  }
}
