import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createKeyedQueue, createSemaphore, endsWithin } from 'mountkeeper';
import type { MountPlan, Mounter, ShareSpec } from 'mountkeeper';
import { fuseProblem } from './fuse-access.ts';
import { adoptAll } from './adoption.ts';
import { noteBoot } from '../recovery/boot-note.ts';
import { treesOf } from '../cache/metadata.ts';
import { hasIdentity, settleIdentity } from '../cache/identity.ts';
import { CacheDisks } from '../cache/cache-disks.ts';
import { createCacheRoots, holdsFiles } from '../cache/cache-folders.ts';
import { cachedShares, pendingIn, pendingInAll } from '../cache/scan.ts';
import { pendingInLayer, pendingInLayers, planLayer, mountLayer } from '../layer/layering.ts';
import type { StartLower } from '../layer/layering.ts';
import { layerPaths } from '../layer/paths.ts';
import { asSoleUser } from './sole-use.ts';
import { recoverUnmounted } from '../layer/upper/set-aside.ts';
import { isWrittenTo } from '../layer/upper/still-open.ts';
import { FormerCaches } from '../former/former-cache.ts';
import { isReadOnlyCache } from '../former/read-only-cache.ts';
import { clearFormerLayer } from '../layer/remove-layer.ts';
import { ActiveMount } from './active-mount.ts';
import { recoveryReport } from '../recovery/recovery-report.ts';
import type { Notice } from '../recovery/recovery-report.ts';
import { lockLater, prepareMountPoint, unlockMountPoint } from './mount-point.ts';
import { narrowMount } from './mount-flags.ts';
import { cacheFolder, createPlans, planReady } from './mount-plan.ts';
import type { SharePlan } from './mount-plan.ts';
import { clearAfterPowerCut } from '../recovery/power-cut.ts';
import { keepLateWrites } from '../recovery/late-writes.ts';
import { optionsOf } from '../options/backends.ts';
import { hostKeyDoubts } from '../options/host-keys.ts';
import { probeRemote, remoteFolders } from './probe.ts';
import { RunningMounts } from './running-mounts.ts';
import type { Outdated, RunningRclone } from '../releases/renewal.ts';
import { measureLine } from '../stats/line-speed.ts';
import { CleanCaches } from '../cache/clean-caches.ts';
import { refuseForeignCache } from '../cache/foreign-cache.ts';
import { releaseForMount } from '../cache/reserve.ts';
import { locate } from '../rclone/installed.ts';
import { ControlPorts } from '../rclone/control/control-ports.ts';
import { userOfCache } from '../cache/sole-user.ts';
import { endFormer, ready, start, startListed, startLower } from './start.ts';
import type { MountingTools, MountTools } from './tools.ts';
import { WriteOut } from '../recovery/cache-sync.ts';
import { isLayered, layerProblem } from '../layer/needs.ts';

const LAST_WRITE_OUT_MS = 3_000;
/** Backends whose share is a folder, so that each rclone lists it before it is shown; a bucket's folders are none. */
const LISTS_FOLDERS: ReadonlySet<string> = new Set(['sftp', 'ftp', 'webdav']);
/** After this time a mount that nobody has probed has started its processes; those that were probed came in turn. */
const STARTED_MS = 400;
const MAX_PATHS = 1_000;

export interface RcloneMounter extends Mounter {
  /** Unlocks folders that are no longer mount points of a share. */
  unlock(): Promise<void>;
  /** Notices about files in the caches that are not uploaded automatically. */
  leftovers(): Promise<readonly Notice[]>;
  /** Notices about what makes the caches unsafe in a power cut. */
  unsafe(): readonly Notice[];
  /** Mounts whose rclone is another one than the next mount would have. */
  outdated(): Promise<readonly Outdated[]>;
  /**
   * Waits, for a limited time, until the caches are written to their disks. `isStop`: every share was unmounted and the
   * daemon ends.
   */
  settle(isStop: boolean): Promise<void>;
}

export function createMounter(given: MountTools): RcloneMounter {
  const tools = {
    ...given,
    writeOut: new WriteOut(given),
    controlPorts: new ControlPorts(given.clock),
    plans: createPlans(given.config, given.secrets),
    former: new FormerCaches(given, given.onSent),
  };
  const mountPoints = new Set<string>();
  const mounts = new RunningMounts();
  /** One after the other for each share: a try that nobody waits for any more may still end. */
  const tries = createKeyedQueue();
  const disks = new CacheDisks({
    stateDir: tools.paths.stateDir,
    mountTable: tools.mountTable,
    mayHold: (root) => holdsFiles(root, async (folder) => (await pendingInLayer(folder, tools)).count > 0),
  });
  const roots = createCacheRoots(tools.paths.stateDir, (root) => disks.mayHold(root));
  const rootsNow = async (): Promise<readonly [string, ...string[]]> => [
    tools.config().cache.dir,
    ...(await roots.former(tools.config().cache.dir)),
  ];
  /** Rejects where the disk of one is not there: nobody knows what waits on it. */
  const readableRoots = async (): Promise<readonly [string, ...string[]]> => {
    const all = await rootsNow();
    for (const root of all) await disks.require(root);
    return all;
  };
  /** The share was mounted before, from where it leads now. */
  const wasHere = async (spec: ShareSpec): Promise<boolean> => {
    const cacheDir = cacheFolder(tools.config(), spec.share.name);
    const { place } = tools.plans.of(spec);
    return isLayered() && (await hasIdentity(cacheDir, place)) && (await isReadOnlyCache(cacheDir));
  };
  const places = createSemaphore({
    places: 2 * availableParallelism(),
    heldAtMostMs: STARTED_MS,
    clock: tools.clock,
  });
  const clean = new CleanCaches();
  /** As the last look of a stop found it, after each share was unmounted. */
  const noteWhenEmpty = async (): Promise<void> => {
    const root = tools.config().cache.dir;
    if (clean.are(await cachedShares(root))) await disks.noteEmpty(root);
  };
  const pathOf = (shareName: string): string =>
    tools.config().shares.find((share) => share.name === shareName)?.remote_path ?? '';
  return {
    plan: (spec) => tools.plans.of(spec).mount,
    probe: (spec, signal) => probeRemote(spec, tools, signal),
    folders: (spec, signal) => remoteFolders(spec, tools, signal),
    measure: (spec, signal) => measureLine(spec, tools, signal),
    doubtsOf: hostKeyDoubts,
    optionsOf,
    mountsWithoutRemote: wasHere,
    mountsUnprobed: async (spec) => LISTS_FOLDERS.has(spec.connection.type) && wasHere(spec),
    mount: async (spec, signal, { isUnprobed = false } = {}) => {
      const leave = isUnprobed ? await places.enter(signal) : () => undefined;
      const isOver = clean.mounting();
      try {
        const cacheDir = cacheFolder(tools.config(), spec.share.name);
        await refuseForeignCache(cacheDir);
        // First, since what is noted on a full disk is written as well.
        await releaseForMount(cacheDir);
        await disks.note(tools.config().cache.dir);
        await roots.note(tools.config().cache.dir);
        // Noted as soon as it is locked: the share may never be mounted.
        const onLocked = (path: string): void => void mountPoints.add(path);
        await mounts.uploadsEnded(spec.share.name, signal);
        const mount = await tries.run(spec.share.name, () =>
          mountShare(spec, { ...tools, onLocked, isUnprobed }, signal),
        );
        mounts.add(mount);
        return mount;
      } finally {
        isOver();
        leave();
      }
    },
    adopt: async () => {
      const adopted = await adoptAll(tools);
      for (const mount of adopted) {
        mountPoints.add(mount.plan.mountPoint);
        mounts.add(mount);
      }
      // Reads whole caches where a former version left some: nobody waits for that.
      const used = [...new Set(adopted.map((mount) => mount.cacheRoot))];
      void Promise.all([
        ...[...used, tools.config().cache.dir].map(roots.note),
        // A version that noted no disks may have mounted them.
        ...used.map(async (root) => {
          await refuseForeignCache(root);
          await disks.note(root);
        }),
      ]).catch((error: unknown) => tools.log.warn({ err: error }, 'folders of caches not noted'));
      return adopted;
    },
    pending: async (shareName) => {
      const noteClean = clean.look(shareName);
      const folders = (await readableRoots()).map((root) => join(root, shareName));
      const [cached, written] = await Promise.all([
        pendingInAll(folders, pathOf(shareName)),
        pendingInLayers(folders, tools),
      ]);
      if (cached.count + written.count === 0) noteClean();
      return {
        count: cached.count + written.count,
        bytes: cached.bytes + written.bytes,
        paths: [...written.paths, ...cached.paths].slice(0, MAX_PATHS),
      };
    },
    cached: async () => {
      clean.begin();
      return [...new Set((await Promise.all((await readableRoots()).map(cachedShares))).flat())];
    },
    leftovers: async () => recoveryReport(...(await rootsNow())),
    unsafe: () =>
      [...tools.writeOut.troubles, ...disks.troubles].map((message) => ({ level: 'warning', message })),
    outdated: () => mounts.outdated(tools),
    settle: async (isStop) => {
      // What is not noted counts as something that may wait.
      const noted = isStop
        ? noteWhenEmpty().catch((err: unknown) => tools.log.warn({ err }, 'an empty cache not noted'))
        : undefined;
      await Promise.all([tools.former.close(), tools.writeOut.letGo(LAST_WRITE_OUT_MS)]);
      await noted;
    },
    unlock: async () => {
      await Promise.all([...mountPoints].map((path) => unlockMountPoint(path, tools)));
    },
  };
}

async function mountShare(
  spec: ShareSpec,
  tools: ShareMounting,
  signal: AbortSignal,
): Promise<RunningRclone> {
  signal.throwIfAborted();
  const planned = tools.plans.renewed(spec);
  const cacheDir = cacheFolder(tools.config(), spec.share.name);
  // By now the folders above it have been made.
  await refuseForeignCache(cacheDir);
  const problem = await fuseProblem(locate);
  if (problem !== undefined) throw new Error(problem);
  await tools.former.finish(spec.share.name, planned.mount.fingerprint, signal);
  await endFormer(spec.share.name, tools);
  const user = await userOfCache(cacheDir);
  if (user !== undefined)
    throw new Error(
      `another rclone (process ${user}) works on the cache folder ${cacheDir}; ` +
        'end it, or the daemon that it belongs to, or choose another cache.dir',
    );
  return asSoleUser(cacheDir, tools.processes, () => mountOwn(spec, { planned, cacheDir }, tools, signal));
}

type ShareMounting = MountingTools & {
  /** Called with each mount point as soon as it is locked. */
  readonly onLocked: (mountPoint: string) => void;
  readonly isUnprobed: boolean;
};

/** By whoever has the cache for itself. */
async function mountOwn(
  spec: ShareSpec,
  { planned, cacheDir }: { readonly planned: SharePlan; readonly cacheDir: string },
  tools: ShareMounting,
  signal: AbortSignal,
): Promise<RunningRclone> {
  const { work } = layerPaths(cacheDir);
  await prepareMountPoint(planned.mount.mountPoint, { share: spec.share.name, work }, tools);
  tools.onLocked(planned.mount.mountPoint);
  await readyCache(spec, { planned, cacheDir }, tools, signal).catch((error: unknown) =>
    Promise.reject(
      new Error(`the cache folder ${cacheDir} cannot be used: ${(error as Error).message}`, { cause: error }),
    ),
  );
  await tools.former.empty({ spec, plan: planned.mount, cacheDir }, signal);
  signal.throwIfAborted();
  const plan = planReady(spec, { place: planned.place, cacheDir }, tools);
  const missing = await layerProblem(spec, {
    cacheDir,
    mountTable: tools.mountTable,
  });
  if (missing !== undefined) throw new Error(missing);
  if (!isLayered()) return mountPlain(spec, { plan, cacheDir }, tools, signal);
  const layering = await planLayer(spec, plan, tools);
  const start: StartLower = (one, ended) => startLower(one, tools, ended);
  const listed: StartLower = (one, ended) => startListed(one, tools, ended);
  return mountLayer(layering, { start, ...(tools.isUnprobed && { first: listed }) }, tools, signal);
}

/** For a daemon that is not root: rclone's own mount, which only shows what is on the remote. */
async function mountPlain(
  spec: ShareSpec,
  { plan, cacheDir }: { readonly plan: MountPlan; readonly cacheDir: string },
  tools: MountingTools,
  signal: AbortSignal,
): Promise<ActiveMount> {
  const lock = await lockLater(plan.mountPoint);
  try {
    const { process, notes } = await start(spec, { plan }, cacheDir, tools);
    await ready(spec, { process, notes }, tools, signal);
    const active = new ActiveMount(process, notes, tools);
    await narrowMount(spec.share, tools);
    return active;
  } finally {
    await lock();
  }
}

async function readyCache(
  spec: ShareSpec,
  { planned, cacheDir }: { readonly planned: SharePlan; readonly cacheDir: string },
  tools: MountingTools,
  signal: AbortSignal,
): Promise<void> {
  const { log, clock, processes } = tools;
  const ownLog = log.child({ share: spec.share.name });
  // Before anything is moved aside, because files that come back later are not checked again.
  const wasCut = await clearAfterPowerCut({
    cacheDir,
    trees: treesOf(cacheDir),
    clock,
    log: ownLog,
    signal,
  });
  if (wasCut) await keepLateWrites({ cacheDir, log: ownLog, signal }, tools);
  const { setAside } = await settleIdentity(
    cacheDir,
    planned.place,
    async () => {
      await recoverUnmounted(layerPaths(cacheDir), { log: ownLog, processes });
      const [cached, written] = [await pendingIn(cacheDir), await pendingInLayer(cacheDir, tools)];
      const { upper, aside } = layerPaths(cacheDir);
      return cached.count + written.count > 0 || isWrittenTo([upper, aside], processes);
    },
    { names: [planned.formerPlace], lesser: planned.lesser?.place },
  );
  if (setAside)
    log.warn(
      { share: spec.share.name, cacheDir },
      'dirty files belong to another place and wait until the share leads there again',
    );
  // What is left has survived a boot.
  await noteBoot(cacheDir);
  await clearFormerLayer(cacheDir);
  if (wasCut) await endsWithin(clock, LAST_WRITE_OUT_MS, tools.writeOut.settle(cacheDir));
}
