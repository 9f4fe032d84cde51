/** Brings a cache folder to the disk where its file system may bring later changes to the disk before earlier ones. */
import { statfs } from 'node:fs/promises';
import type { WriteOut } from './cache-sync.ts';

/**
 * File systems whose sync of one file brings all changes of names from before to the disk with it: ext4 and XFS, which
 * have one journal. What lies in memory (tmpfs) is lost as a whole. Btrfs brings the file alone.
 */
const IN_ORDER: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/** Whether a power cut that leaves what is synced from now on leaves the changes of names from before. */
export async function keepsOrder(folder: string, typeOf = typeIn): Promise<boolean> {
  return IN_ORDER.has(await typeOf(folder));
}

/** Resolves when what was in the folder before the call stays, whatever is synced from then on. Rejects else. */
export async function settleOrder(
  folder: string,
  writeOut: Pick<WriteOut, 'settle'>,
  typeOf = typeIn,
): Promise<void> {
  if (await keepsOrder(folder, typeOf)) return;
  if (!(await writeOut.settle(folder)))
    throw new Error(`the disk that holds ${folder} cannot be written out`);
}

async function typeIn(folder: string): Promise<number> {
  return (await statfs(folder)).type;
}
