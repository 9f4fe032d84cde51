/**
 * Where the files of a share's write layer are. The upper folder is the difference between the remote and
 * what users want: it is never emptied automatically.
 */
import { join } from 'node:path';

/** Folder name, next to rclone's own trees in the share's cache folder. */
export const LAYER = 'layer';
/** Beside it: it outlives a layer that ends. */
const DISCARDED = 'discarded';

export interface LayerPaths {
  /** Contains all the others. */
  readonly folder: string;
  /** The overlay's `upperdir`. */
  readonly upper: string;
  /** The overlay's `workdir`; used only by the kernel. */
  readonly work: string;
  /** Entries that are being removed from the upper folder. */
  readonly aside: string;
  /** The uploader's own records. */
  readonly records: string;
  /** Beside `folder`: what users wrote and gave up, for a while. */
  readonly discarded: string;
}

export function layerPaths(cacheDir: string): LayerPaths {
  const folder = join(cacheDir, LAYER);
  return {
    folder,
    upper: join(folder, 'upper'),
    work: join(folder, 'work'),
    aside: join(folder, 'aside'),
    records: join(folder, 'records'),
    discarded: join(cacheDir, DISCARDED),
  };
}

/** Where the stack below a share's overlay is assembled; only the daemon's user may enter. */
export interface StackPaths {
  /**
   * Contains all the others. A private mount (not propagated to other namespaces), because mounts can be
   * moved only in private ones.
   */
  readonly folder: string;
  /** The folder that bindfs mirrors. */
  readonly source: string;
  /** In `source`: where the current rclone is mounted. */
  readonly place: string;
  /** Where bindfs is mounted. */
  readonly through: string;
  /** `place` as seen through bindfs: the overlay's lower layer. */
  readonly lower: string;
  /** Where a new rclone is mounted before it is moved to `place`. */
  readonly fresh: string;
  /** Where the overlay is mounted before it is moved to the share's mount point. */
  readonly staging: string;
  /** Where the overlay is mirrored for NFS. */
  readonly handles: string;
}

/** rclone's mount point in `fresh` appears in its command line. */
export function stackPaths(stateDir: string, shareName: string): StackPaths {
  const folder = join(stateDir, 'mount', 'lower', shareName);
  const [source, through] = [join(folder, 'source'), join(folder, 'through')];
  return {
    folder,
    source,
    place: join(source, 'low'),
    through,
    lower: join(through, 'low'),
    fresh: join(folder, 'fresh'),
    staging: join(folder, 'staging'),
    handles: join(folder, 'handles'),
  };
}
