/**
 * A small reserve of disk space that only the records may use: on a full disk nothing could be uploaded
 * without it, and no space would be freed.
 */
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = 'reserve';
const BYTES = 2 * 1_048_576;

/** Resolves when the reserve exists, or when there is no space for it. */
export async function keepReserve(folder: string): Promise<void> {
  const file = join(folder, NAME);
  // Not there.
  if ((await stat(file).catch(() => undefined))?.size === BYTES) return;
  try {
    const handle = await open(file, 'w', 0o600);
    try {
      await handle.writeFile(Buffer.alloc(BYTES, 'room '));
    } finally {
      await handle.close();
    }
  } catch {
    // Half a reserve would be useless.
    await rm(file, { force: true });
  }
}

/** Repeats the work with the space of the reserve when the disk is full. */
export async function withReserve<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await rm(join(folder, NAME), { force: true });
    return work();
  }
}
