/**
 * A small reserve of disk space in a folder, for what must be noted on a full disk: without it nothing could be
 * uploaded there, and no space would be freed.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const NAME = 'reserve';
const BYTES = 2 * 1_048_576;
/** With less room than this, users need it more. */
const SCARCE_BELOW_BYTES = 16 * BYTES;

/** As `keepReserve`, for a disk that may have been full since. Never rejects. */
export async function renewReserve(folder: string): Promise<void> {
  // Unknown counts as no room.
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: 0, bsize: 0 }));
  if (bavail * bsize >= SCARCE_BELOW_BYTES) await keepReserve(folder);
}

/** Resolves with whether the reserve exists; false when there is no space for it. Never rejects. */
export async function keepReserve(folder: string): Promise<boolean> {
  const file = join(folder, NAME);
  // Not there.
  if ((await stat(file).catch(() => undefined))?.size === BYTES) return true;
  try {
    const handle = await open(file, 'w', 0o600);
    try {
      // A file system that compresses would reserve next to nothing for a text.
      await handle.writeFile(await promisify(randomBytes)(BYTES));
    } finally {
      await handle.close();
    }
    return true;
  } catch {
    // Half a reserve would be useless; where it cannot be removed either, nothing is to be done.
    await rm(file, { force: true }).catch(() => undefined);
    return false;
  }
}

/** Gives its space to whoever writes next. */
export async function releaseReserve(folder: string): Promise<void> {
  await rm(join(folder, NAME), { force: true });
}

/** Repeats the work with the space of the reserve when the disk is full. */
export async function withReserve<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await releaseReserve(folder);
    return work();
  }
}
