import type { Transfer } from './upload-meter.ts';

/**
 * Puts the direction to transfers of an rclone that does not tell it: what goes up is marked as changed in the cache on the disk.
 * Where that does not add up to as many as go up, such as with a changed file that is being read, they stay as they are.
 */
export async function withDirections(transfers: readonly Transfer[], uploads: number, isDirty: (name: string) => Promise<boolean>): Promise<readonly Transfer[]> {
  const isTold = transfers.every(({ srcFs, dstFs }) => srcFs !== undefined || dstFs !== undefined);
  if (isTold || uploads === 0 || transfers.length <= uploads) return transfers;
  const dirty = await Promise.all(transfers.map(({ name }) => isDirty(name)));
  if (dirty.filter(Boolean).length !== uploads) return transfers;
  return transfers.map((transfer, index) => (dirty[index] === true ? { ...transfer, dstFs: '' } : { ...transfer, srcFs: '' }));
}
