import type { MountTable } from 'mountkeeper';
import { SEAL_SOURCE } from './mount-point.ts';

export interface InPlaceOptions {
  readonly mountPoint: string;
  /** Source of the mount as the kernel shows it. */
  readonly device: string;
  readonly mountTable: MountTable;
  /** Called once, when the mount is known to be off its path. */
  readonly onLost: () => void;
}

/** While the table changes a reader may miss a line of it; not twice. */
const LOOKS_WITHOUT = 2;

/**
 * Looks whether the mount is where it was made. One that somebody took off the path while a file of it was
 * open lives and answers on, though nobody can come to it any more; and something else may be mounted over
 * it. Gives what is in the way, if anything.
 */
export function createInPlace({
  mountPoint,
  device,
  mountTable,
  onLost,
}: InPlaceOptions): () => Promise<string | undefined> {
  let looksWithout = 0;
  return async () => {
    const isThere = (await mountTable.list()).some(
      (entry) => entry.mountPoint === mountPoint && entry.source === device,
    );
    looksWithout = isThere ? 0 : looksWithout + 1;
    if (looksWithout === LOOKS_WITHOUT) onLost();
    const top = isThere ? await mountTable.find(mountPoint) : undefined;
    if (top === undefined || top.source === device || top.source === SEAL_SOURCE) return undefined;
    return `something else (${top.fsType}, ${top.source}) is mounted over it, and whoever comes by its path gets that; unmount it`;
  };
}
