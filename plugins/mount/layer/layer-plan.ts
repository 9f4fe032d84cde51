/** How a share with a write layer is to be mounted. */
import type { MountPlan, ShareSpec } from 'mountkeeper';
import type { OverlayNotes } from '../lifecycle/mount-record.ts';
import type { LayerPaths, StackPaths } from './paths.ts';

export interface LayerPlan {
  /** As users see the share. */
  readonly shown: MountPlan;
  /** What rclone is told: read-only, and elsewhere. */
  readonly lowerSpec: ShareSpec;
  /** Where rclone is in the end. */
  readonly lowerPlan: MountPlan;
  readonly cacheDir: string;
  readonly paths: LayerPaths;
  readonly stack: StackPaths;
  readonly overlay: OverlayNotes;
}
