/** Where a share's write layer lies. The upper folder is the difference between the remote and what users want: never cleared by itself. */
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
  return { folder, upper: join(folder, 'upper'), work: join(folder, 'work'), aside: join(folder, 'aside'), records: join(folder, 'records') };
}

/** Where rclone is mounted for the overlay alone. */
export function lowerFolder(stateDir: string, shareName: string): string {
  return join(stateDir, 'mount', 'lower', shareName);
}
