/**
 * A little room on the disk that only the records may use: with a disk that is full nothing could go up, and
 * no room would be made.
 */
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = 'reserve';
const BYTES = 2 * 1_048_576;

/** Resolves when it is there, or when there is no room for it: then there is none. */
export async function keepReserve(folder: string): Promise<void> {
  const file = join(folder, NAME);
  if ((await stat(file).catch(() => undefined))?.size === BYTES) return;
  try {
    const handle = await open(file, 'w', 0o600);
    try {
      await handle.writeFile(Buffer.alloc(BYTES, 'room '));
    } finally {
      await handle.close();
    }
  } catch {
    // Half of it would be no use.
    await rm(file, { force: true });
  }
}

/** Does it once more with the room of the reserve where the disk is full. */
export async function withReserve<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await rm(join(folder, NAME), { force: true });
    return work();
  }
}
