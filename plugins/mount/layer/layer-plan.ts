/** The mount plan of a share with a write layer. */
import type { MountPlan, ShareSpec } from 'mountkeeper';
import type { OverlayNotes } from '../lifecycle/mount-record.ts';
import type { LayerPaths, StackPaths } from './paths.ts';

export interface LayerPlan {
  /** The share's mount as users see it. */
  readonly shown: MountPlan;
  /** The spec for rclone: read-only, at another mount point. */
  readonly lowerSpec: ShareSpec;
  /** The plan of rclone's mount at its final place. */
  readonly lowerPlan: MountPlan;
  readonly cacheDir: string;
  readonly paths: LayerPaths;
  readonly stack: StackPaths;
  readonly overlay: OverlayNotes;
}
