/**
 * How a share with a write layer is mounted, adopted and inspected: what the mounter does in addition to
 * its work for any share.
 */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { makeFolder, undefinedWhenMissing } from 'mountkeeper';
import type {
  ManagedProcess,
  MountEntry,
  MountPlan,
  PendingFiles,
  RemoteFailure,
  ShareSpec,
} from 'mountkeeper';
import { withFolders } from '../options/remote-config.ts';
import { remotePath } from '../rclone/arguments.ts';
import { asideFolders } from '../cache/identity.ts';
import type { ActiveMount } from '../lifecycle/active-mount.ts';
import { clearMountPoint } from '../lifecycle/mount-point.ts';
import { cacheFolder, LeadsElsewhere, specOf } from '../lifecycle/mount-plan.ts';
import { RcloneFiles } from '../rclone/remote-files.ts';
import type { MountingTools, MountTools } from '../lifecycle/tools.ts';
import { recoverAside, recoverUnmounted } from './upper/set-aside.ts';
import { adoptedPlan } from './adopted-plan.ts';
import { LayeredMount } from './layered-mount.ts';
import { endHandles } from './bindfs/handle-folder.ts';
import { endBindfs } from './bindfs/start.ts';
import { dropNames, mountOverlay, overlaySource, unusable } from './overlay.ts';
import type { LayerPlan } from './layer-plan.ts';
import { layerPaths, stackPaths } from './paths.ts';
import { RemoteBelow } from './remote-below.ts';
import { dropSentMark } from './sent-mark.ts';
import {
  clearFresh,
  clearStack,
  isPassedOn,
  moveIn,
  passOn,
  prepareStack,
  show,
  stackKey,
  takeOff,
} from './stack.ts';
import { folderId, fromStackNotes, toStackNotes } from './stack-record.ts';

const SETTLE_MS = 20_000;

/** Starts an rclone that is mounted at `fresh`. */
export type StartLower = (layering: LayerPlan, signal: AbortSignal) => Promise<ActiveMount>;

export interface StartsOfLower {
  readonly start: StartLower;
  /** For the first one, where whatever it fails of is a reason to mount nothing. */
  readonly first?: StartLower;
}

/** Rejects with a plain sentence where the uploader is missing. */
export async function planLayer(spec: ShareSpec, shown: MountPlan, tools: MountTools): Promise<LayerPlan> {
  // Fails before anything is mounted.
  tools.uploader();
  const config = tools.config();
  const cacheDir = cacheFolder(config, spec.share.name);
  // The kernel's mount table has paths without symlinks.
  const stateDir = await realpath(tools.paths.stateDir);
  const stack = stackPaths(stateDir, spec.share.name);
  return {
    shown,
    cacheDir,
    stack,
    paths: layerPaths(cacheDir),
    // Users' empty folders have to be folders on the remote, too.
    lowerSpec: {
      ...spec,
      connection: withFolders(spec.connection),
      share: { ...spec.share, mount_point: stack.fresh, read_only: true },
    },
    lowerPlan: { ...shown, mountPoint: stack.place },
    overlay: {
      mountPoint: shown.mountPoint,
      type: spec.connection.type,
      readOnly: spec.share.read_only,
      exec: spec.share.exec === true,
    },
  };
}

/**
 * Mounts the whole stack: rclone, bindfs on top of it, the overlay on top of that. When one step fails,
 * nothing stays mounted. But when the remote does not answer, users still get what was written here, and
 * rclone is started later.
 */
export async function mountLayer(
  layering: LayerPlan,
  { start, first }: StartsOfLower,
  tools: MountingTools,
  signal: AbortSignal,
): Promise<LayeredMount> {
  const {
    shown,
    paths,
    overlay,
    stack,
    lowerSpec: {
      share: { name },
    },
  } = layering;
  await prepareStack(stack, tools);
  let [bindfs, lower]: [ManagedProcess?, ActiveMount?] = [];
  try {
    // Before rclone, which would work on the cache of a share that another daemon has.
    const passing = await passOn(
      name,
      { paths: stack, cache: paths.folder },
      { fingerprint: shown.fingerprint, notes: toStackNotes(layering) },
      tools,
    );
    bindfs = passing.process;
    const ended = new AbortController();
    passing.mounted.catch((error: unknown) => ended.abort(error));
    const either = AbortSignal.any([signal, ended.signal]);
    const started = first?.(layering, either) ?? unlessSilent(start(layering, either), layering, tools);
    // Whichever fails, the other has settled before all is undone.
    const [passed, below] = await Promise.allSettled([passing.mounted, started]);
    if (below.status === 'fulfilled') lower = below.value;
    for (const one of [passed, below]) if (one.status === 'rejected') throw one.reason;
    await clearUpper(layering, lower, tools, signal);
    // Over the empty folder; nobody can see it until the overlay is moved to the share's mount point.
    await mountOverlay(
      {
        ...overlay,
        shareName: name,
        paths,
        lower: stack.lower,
        staging: stack.staging,
      },
      tools,
    );
    await show(stack, { mountPoint: shown.mountPoint, isFresh: lower !== undefined }, tools);
    return layeredMount(layering, { bindfs, lower, start, adopted: false }, tools);
  } catch (error) {
    await undo(layering, { bindfs, lower }, tools).catch((cause: unknown) =>
      tools.log.error({ share: name, err: cause }, 'failed mount not cleared'),
    );
    throw error;
  }
}

/** Finishes what a former daemon or overlay left half-done, while no overlay is mounted. */
async function clearUpper(
  { paths, overlay, lowerSpec }: LayerPlan,
  lower: ActiveMount | undefined,
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  const { log } = tools;
  const { name } = lowerSpec.share;
  await dropSentMark(paths).catch((error: unknown) => Promise.reject(unusable(paths.folder, error)));
  const count = await recoverUnmounted(paths, tools);
  if (count > 0)
    log.info({ share: name, files: count }, 'what was being taken out of the write layer is in it again');
  for (const folder of [paths.upper, paths.records]) await makeFolder(folder);
  const remote = new RemoteBelow(overlay.type, () => 'the remote does not answer');
  if (lower)
    remote.use(
      new RcloneFiles({
        address: lower.address,
        fs: remotePath(lowerSpec),
        type: overlay.type,
        clock: tools.clock,
        root: lower.root,
      }),
    );
  try {
    await tools.uploader().settle({
      upper: paths.upper,
      records: paths.records,
      remote,
      signal: tools.clock.deadline(SETTLE_MS, signal),
    });
  } catch (error) {
    // What is left is updated on the living overlay; folders may be hidden for a moment.
    log.warn({ share: name, err: error }, 'marks of the write layer not settled');
  } finally {
    remote.use(undefined);
  }
}

async function unlessSilent(
  starting: Promise<ActiveMount>,
  layering: LayerPlan,
  { log }: MountTools,
): Promise<ActiveMount | undefined> {
  try {
    return await starting;
  } catch (error) {
    if ((error as RemoteFailure).remote !== 'silent') throw error;
    log.warn({ share: layering.lowerSpec.share.name, err: error }, 'share comes up without its remote');
    return undefined;
  }
}

interface Parts {
  readonly bindfs?: ManagedProcess | undefined;
  readonly lower?: ActiveMount | undefined;
}

async function undo(
  { shown, stack, lowerSpec }: LayerPlan,
  { bindfs, lower }: Parts,
  tools: MountTools,
): Promise<void> {
  await lower?.kill();
  if (bindfs) await endBindfs(bindfs);
  const share = lowerSpec.share.name;
  if ((await tools.mountTable.find(shown.mountPoint))?.source === overlaySource(share))
    await clearMountPoint(shown.mountPoint, tools, { share, active: 'detach' });
  await clearStack(stack, tools);
}

/** Ends the processes and mounts of a former daemon's share that nobody adopted. */
export async function endFormerStack(shareName: string, tools: MountTools): Promise<void> {
  await endHandles(shareName, tools);
  const bindfs = await tools.processes.adopt(stackKey(shareName));
  if (bindfs) await endBindfs(bindfs);
  const stack = stackPaths(await realpath(tools.paths.stateDir), shareName);
  await clearStack(stack, tools);
}

/**
 * The share that a former daemon left, whether its rclone is alive or not; undefined when bindfs or the
 * overlay is gone, or no uploader is available for what is written to it.
 */
export async function adoptLayer(
  shareName: string,
  {
    adoptLower,
    start,
  }: {
    readonly adoptLower: () => Promise<ActiveMount | undefined>;
    readonly start: StartLower;
  },
  tools: MountingTools,
): Promise<{ readonly mount: LayeredMount; readonly entry: MountEntry } | undefined> {
  const bindfs = await tools.processes.adopt(stackKey(shareName));
  const record = bindfs && fromStackNotes(bindfs);
  if (!bindfs || !record) return undefined;
  try {
    const notes = { ...record, plan: await adoptedPlan(shareName, record, tools) };
    const stack = stackPaths(await realpath(tools.paths.stateDir), shareName);
    const entry = (await tools.mountTable.list()).find(
      (one) => one.mountPoint === notes.plan.mountPoint && one.source === overlaySource(shareName),
    );
    if (!entry || !(await isPassedOn(stack, tools.mountTable))) return undefined;
    const paths = layerPaths(notes.cacheDir);
    // What is missing in another one, nobody has deleted; what users write goes on to the one that is mounted.
    if (notes.layer !== undefined && notes.layer !== (await folderId(paths.folder)))
      throw new Error(`${paths.folder} is not the folder any more that the share was mounted with`);
    // Before an uploader scans: a file that is missing in the upper folder counts as deleted.
    const count = await recoverAside(paths, tools.log, { isLive: true });
    if (count > 0) {
      tools.log.info(
        { share: shareName, files: count },
        'what was being taken out of the write layer is in it again',
      );
      await dropNames(notes.plan.mountPoint, notes, tools);
    }
    const lower = await adoptLower();
    const mount = new LayeredMount({
      ...notes,
      shareName,
      bindfs,
      lower,
      stack,
      paths,
      adopted: true,
      uploader: tools.uploader(),
      tools,
      start: async (signal, before) =>
        startOther(await layeringAgain(shareName, notes.plan, tools), { start, before }, tools, signal),
    });
    return { mount, entry };
  } catch (error) {
    tools.log.error({ share: shareName, err: error }, 'write layer not adopted');
    return undefined;
  }
}

function layeredMount(
  layering: LayerPlan,
  { start, ...parts }: Parts & { bindfs: ManagedProcess; start: StartLower; adopted: boolean },
  tools: MountingTools,
): LayeredMount {
  const { shown, paths, overlay, stack, cacheDir, lowerSpec } = layering;
  return new LayeredMount({
    ...overlay,
    ...parts,
    shareName: lowerSpec.share.name,
    plan: shown,
    paths,
    stack,
    cacheDir,
    fs: remotePath(lowerSpec),
    uploader: tools.uploader(),
    tools,
    start: (signal, before) => startOther(layering, { start, before }, tools, signal),
  });
}

/**
 * Starts another rclone in place of one that has ended. Rejects with `LeadsElsewhere` where a secret leads elsewhere
 * by now: what waits would go there.
 */
async function startOther(
  layering: LayerPlan,
  {
    start,
    before,
  }: {
    readonly start: StartLower;
    readonly before: (lower: ActiveMount) => Promise<void>;
  },
  tools: MountTools,
  signal: AbortSignal,
): Promise<ActiveMount> {
  const {
    lowerSpec: {
      share: { name },
    },
    stack,
  } = layering;
  await takeOff(name, stack, tools);
  await clearFresh(stack, tools);
  const lower = await start(layering, signal);
  try {
    await before(lower);
    await moveIn(name, stack, tools);
    return lower;
  } catch (error) {
    await lower.kill();
    throw error;
  }
}

/**
 * Plans with the current settings, as long as they lead to the same remote path: what was written for one
 * NAS must not go to another.
 */
async function layeringAgain(shareName: string, plan: MountPlan, tools: MountingTools): Promise<LayerPlan> {
  const spec = specOf(shareName, tools.config());
  if (!spec) throw new Error('the share is not in the configuration any more');
  const layering = await planLayer(spec, tools.plans.renewed(spec).mount, tools);
  const { identity, mountPoint } = layering.shown;
  if (identity !== plan.identity || mountPoint !== plan.mountPoint) throw new LeadsElsewhere();
  return layering;
}

/**
 * Files that wait in the upper folders of these cache folders, including those that were moved aside
 * because they belong to another remote path.
 */
export async function pendingInLayers(
  cacheDirs: readonly string[],
  tools: Pick<MountTools, 'uploader'>,
): Promise<PendingFiles> {
  const folders = [...cacheDirs, ...(await Promise.all(cacheDirs.map(asideFolders))).flat()];
  const all = await Promise.all(folders.map((folder) => pendingInLayer(folder, tools)));
  return {
    count: all.reduce((sum, one) => sum + one.count, 0),
    bytes: all.reduce((sum, one) => sum + one.bytes, 0),
    paths: all.flatMap((one) => one.paths),
  };
}

const NOTHING: PendingFiles = { count: 0, bytes: 0, paths: [] };

/**
 * Rejects when the uploader cannot tell: files may be waiting. Where there is an upper folder, it is asked also if that
 * is empty: that a file was deleted may stand in its records alone.
 */
export async function pendingInLayer(
  cacheDir: string,
  tools: Pick<MountTools, 'uploader'>,
): Promise<PendingFiles> {
  const { upper, records } = layerPaths(cacheDir);
  const isThere = (await lstat(upper).catch(undefinedWhenMissing)) !== undefined;
  return isThere ? tools.uploader().waiting(upper, records) : NOTHING;
}

/** Whether there is anything in the upper folder of this cache folder. */
export async function holdsLayer(cacheDir: string): Promise<boolean> {
  const names = await readdir(layerPaths(cacheDir).upper).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length > 0;
}
