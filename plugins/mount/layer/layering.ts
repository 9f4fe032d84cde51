/** How a share with a write layer is mounted, adopted and looked at: what the mounter does beside what it does for any share. */
import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from 'mountkeeper';
import type { Config, MountEntry, MountPlan, PendingFiles, ShareSpec } from 'mountkeeper';
import { asideFolders } from '../cache-place.ts';
import type { LivingMount } from '../living-mount.ts';
import type { MountNotes, OverlayNotes } from '../notes.ts';
import type { MountingTools, MountTools } from '../tools.ts';
import { recoverAside } from './aside.ts';
import { LayeredMount } from './layered-mount.ts';
import { mountOverlay, overlaySource } from './overlay.ts';
import { layerPaths, lowerFolder } from './paths.ts';
import type { LayerPaths } from './paths.ts';

export interface Layering {
  /** As users see the share. */
  readonly shown: MountPlan;
  /** What rclone is told: read-only, and elsewhere. */
  readonly lowerSpec: ShareSpec;
  readonly lowerPlan: MountPlan;
  readonly paths: LayerPaths;
  readonly overlay: OverlayNotes;
}

/** Rejects with a plain sentence where no write layer can be had. */
export async function planLayer(spec: ShareSpec, shown: MountPlan, cacheDir: string, tools: MountTools): Promise<Layering> {
  if (process.getuid?.() !== 0) throw new Error('mount.write_layer needs root, since only root may mount an overlay: run the daemon as root, or set write_layer = false');
  // Told before anything is mounted.
  tools.uploader();
  const folder = lowerFolder(tools.paths.stateDir, spec.share.name);
  await makeFolder(folder);
  // The kernel knows it without links.
  const lower = await realpath(folder);
  return {
    shown, paths: layerPaths(cacheDir),
    lowerSpec: { ...spec, share: { ...spec.share, mount_point: lower, read_only: true } },
    lowerPlan: { ...shown, mountPoint: lower },
    overlay: {
      mountPoint: shown.mountPoint, type: spec.connection.type, readOnly: spec.share.read_only,
      exec: (spec.share as { readonly exec?: boolean }).exec === true,
    },
  };
}

/** Lays the upper folder over rclone's mount; without it nothing stays mounted. */
export async function raiseLayer(lower: LivingMount, notes: MountNotes, { shown, paths, overlay }: Layering, tools: MountingTools): Promise<LayeredMount> {
  try {
    const count = await recoverAside(paths, tools.log);
    if (count > 0) tools.log.info({ share: lower.shareName, files: count }, 'what was being taken out of the write layer is in it again');
    await mountOverlay({ ...overlay, shareName: lower.shareName, paths, lower: lower.plan.mountPoint }, tools);
    return layeredMount(lower, notes, { shown, overlay }, tools);
  } catch (error) {
    await lower.kill().catch((cause: unknown) => tools.log.error({ share: lower.shareName, err: cause }, 'failed mount not cleared'));
    throw error;
  }
}

/** The share that a former daemon left; undefined when its overlay is gone, or nobody could bring up what is written to it. */
export async function adoptLayer(lower: LivingMount, notes: MountNotes, tools: MountingTools): Promise<{ readonly mount: LayeredMount; readonly entry: MountEntry } | undefined> {
  const { overlay } = notes;
  if (!overlay) return undefined;
  try {
    const entry = (await tools.mountTable.list()).find((one) => one.mountPoint === overlay.mountPoint && one.source === overlaySource(notes.share));
    const shown = { ...notes.plan, mountPoint: overlay.mountPoint };
    return entry && { mount: layeredMount(lower, notes, { shown, overlay }, tools), entry };
  } catch (error) {
    tools.log.error({ share: notes.share, err: error }, 'write layer not adopted');
    return undefined;
  }
}

function layeredMount(lower: LivingMount, notes: MountNotes, { shown, overlay }: Pick<Layering, 'shown' | 'overlay'>, tools: MountingTools): LayeredMount {
  return new LayeredMount({ lower, plan: shown, paths: layerPaths(notes.cacheDir), address: notes.rc, fs: notes.fs, ...overlay, uploader: tools.uploader(), tools });
}

/** What waits in the upper folders of these cache folders, also in those that were set aside because they belong to another place. */
export async function pendingInLayers(cacheDirs: readonly string[], tools: Pick<MountTools, 'uploader'>): Promise<PendingFiles> {
  const folders = [...cacheDirs, ...(await Promise.all(cacheDirs.map(asideFolders))).flat()];
  const all = await Promise.all(folders.map((folder) => pendingInLayer(folder, tools)));
  return {
    count: all.reduce((sum, one) => sum + one.count, 0),
    bytes: all.reduce((sum, one) => sum + one.bytes, 0),
    paths: all.flatMap((one) => one.paths),
  };
}

const NOTHING: PendingFiles = { count: 0, bytes: 0, paths: [] };

/** Rejects while nobody can tell: what is there may wait. */
export async function pendingInLayer(cacheDir: string, tools: Pick<MountTools, 'uploader'>): Promise<PendingFiles> {
  const { upper, records } = layerPaths(cacheDir);
  return (await holdsLayer(cacheDir)) ? tools.uploader().waiting(upper, records) : NOTHING;
}

/** Whether anything lies in an upper folder there. */
export async function holdsLayer(cacheDir: string): Promise<boolean> {
  const names = await readdir(layerPaths(cacheDir).upper).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length > 0;
}

/** A share that has no write layer any more, with something in its upper folder that would be hidden. */
export async function refuseHiddenLayer(config: Config, cacheDir: string, tools: Pick<MountTools, 'uploader'>): Promise<void> {
  if (config.mount.write_layer) return;
  const { count } = await pendingInLayer(cacheDir, tools);
  if (count > 0) throw new Error(`${count} files that were written through the write layer wait in ${join(cacheDir, 'layer')}: set mount.write_layer = true until they are on the remote`);
}
