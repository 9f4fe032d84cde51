/**
 * Where a share's write layer lies. The upper folder is the difference between the remote and what users
 * want: never cleared by itself.
 */
import { join } from 'node:path';

/** Beside rclone's own trees in the share's cache folder. */
export const LAYER = 'layer';

export interface LayerPaths {
  /** Holds all the others. */
  readonly folder: string;
  /** The overlay's `upperdir`. */
  readonly upper: string;
  /** The overlay's `workdir`; the kernel's alone. */
  readonly work: string;
  /** What is being taken out of the upper folder. */
  readonly aside: string;
  /** The uploader's own. */
  readonly records: string;
}

export function layerPaths(cacheDir: string): LayerPaths {
  const folder = join(cacheDir, LAYER);
  return {
    folder,
    upper: join(folder, 'upper'),
    work: join(folder, 'work'),
    aside: join(folder, 'aside'),
    records: join(folder, 'records'),
  };
}

/** Where what lies below a share's overlay is put together: for the daemon's user alone. */
export interface StackPaths {
  /**
   * Holds all the others. A mount of its own that the kernel shows to no other namespace: in others nothing
   * can be moved.
   */
  readonly folder: string;
  /** What bindfs passes on. */
  readonly source: string;
  /** In `source`: where the rclone of the moment is mounted. */
  readonly place: string;
  /** Where bindfs is mounted. */
  readonly through: string;
  /** `place` as bindfs shows it: the overlay's lower layer. */
  readonly lower: string;
  /** Where an rclone is mounted before it is moved to `place`. */
  readonly fresh: string;
  /** Where the overlay is mounted before it is moved to the share's mount point. */
  readonly staging: string;
}

/** rclone's mount point in `fresh` is seen in its command line. */
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
  };
}
