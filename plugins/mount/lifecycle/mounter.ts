import { join } from 'node:path';
import type { Mount, Mounter, ShareSpec } from 'mountkeeper';
import { fuseProblem } from './fuse-access.ts';
import { adoptAll } from './adoption.ts';
import { noteBoot } from '../recovery/boot-record.ts';
import { treesOf } from '../cache/metadata.ts';
import { isPlace, settlePlace } from '../cache/identity.ts';
import { repairCache } from '../recovery/repair.ts';
import { createCacheRoots } from '../cache/cache-folders.ts';
import { cachedShares, pendingIn, pendingInAll } from '../cache/scan.ts';
import {
  pendingInLayer,
  pendingInLayers,
  planLayer,
  mountLayer,
  refuseHiddenLayer,
} from '../layer/layering.ts';
import { ActiveMount } from './active-mount.ts';
import { recoveryReport } from '../recovery/recovery-report.ts';
import type { Notice } from '../recovery/recovery-report.ts';
import { lockLater, prepareMountPoint, unlockMountPoint } from './mount-point.ts';
import { narrowMount } from './mount-flags.ts';
import { cacheFolder, formerPlaceOf, placeOf, planMount } from './mount-plan.ts';
import { clearAfterPowerCut } from '../recovery/power-cut.ts';
import { probeRemote, remoteFolders } from './probe.ts';
import { releaseReserve } from '../cache/reserve.ts';
import { locate } from '../rclone/installed.ts';
import { ControlPorts } from '../rclone/control-ports.ts';
import { userOfCache } from '../cache/sole-user.ts';
import { endFormer, ready, start, startLower } from './start.ts';
import type { MountingTools, MountTools } from './tools.ts';
import { endsWithin, WriteOut } from '../recovery/cache-sync.ts';

const LAST_WRITE_OUT_MS = 3_000;
const MAX_PATHS = 1_000;

export interface RcloneMounter extends Mounter {
  /** Gives the folders that no share covers any more back to other uses. */
  unlock(): Promise<void>;
  /** What lies in the caches and goes nowhere by itself. */
  leftovers(): Promise<readonly Notice[]>;
  /** What keeps the caches from being safe in a power cut. */
  unsafe(): readonly Notice[];
  /** Waits, not for long, until what the caches hold is on their disks. */
  settle(): Promise<void>;
}

export function createMounter(given: MountTools): RcloneMounter {
  const tools = { ...given, writeOut: new WriteOut(given), controlPorts: new ControlPorts(given.clock) };
  const mountPoints = new Set<string>();
  const roots = createCacheRoots(tools.paths.stateDir);
  const rootsNow = async (): Promise<readonly [string, ...string[]]> => [
    tools.config().cache.dir,
    ...(await roots.former(tools.config().cache.dir)),
  ];
  const pathOf = (shareName: string): string =>
    tools.config().shares.find((share) => share.name === shareName)?.remote_path ?? '';
  return {
    plan: (spec) => planMount(spec, tools.config(), tools.secrets),
    probe: (spec, signal) => probeRemote(spec, tools, signal),
    folders: (spec, signal) => remoteFolders(spec, tools, signal),
    mountsWithoutRemote: async (spec) =>
      tools.config().mount.write_layer &&
      isPlace(cacheFolder(tools.config(), spec.share.name), placeOf(spec, tools.secrets)),
    mount: async (spec, signal) => {
      await roots.note(tools.config().cache.dir);
      const mount = await mountShare(spec, tools, signal);
      mountPoints.add(spec.share.mount_point);
      return mount;
    },
    adopt: async () => {
      const mounts = await adoptAll(tools);
      for (const mount of mounts) mountPoints.add(mount.plan.mountPoint);
      await Promise.all(
        [tools.config().cache.dir, ...mounts.map((mount) => mount.cacheRoot)].map(roots.note),
      ).catch((error: unknown) => tools.log.warn({ err: error }, 'folders of caches not noted'));
      return mounts;
    },
    pending: async (shareName) => {
      const folders = (await rootsNow()).map((root) => join(root, shareName));
      const [cached, written] = await Promise.all([
        pendingInAll(folders, pathOf(shareName)),
        pendingInLayers(folders, tools),
      ]);
      return {
        count: cached.count + written.count,
        bytes: cached.bytes + written.bytes,
        paths: [...written.paths, ...cached.paths].slice(0, MAX_PATHS),
      };
    },
    cached: async () => [...new Set((await Promise.all((await rootsNow()).map(cachedShares))).flat())],
    leftovers: async () => recoveryReport(...(await rootsNow())),
    unsafe: () => tools.writeOut.troubles.map((message) => ({ level: 'warning', message })),
    settle: () => tools.writeOut.letGo(LAST_WRITE_OUT_MS),
    unlock: async () => {
      await Promise.all([...mountPoints].map((path) => unlockMountPoint(path, tools)));
    },
  };
}

async function mountShare(spec: ShareSpec, tools: MountingTools, signal: AbortSignal): Promise<Mount> {
  const plan = planMount(spec, tools.config(), tools.secrets);
  const cacheDir = cacheFolder(tools.config(), spec.share.name);
  const layering = tools.config().mount.write_layer ? await planLayer(spec, tools) : undefined;
  const problem = await fuseProblem(locate);
  if (problem !== undefined) throw new Error(problem);
  await endFormer(spec.share.name, tools);
  const user = await userOfCache(cacheDir);
  if (user !== undefined)
    throw new Error(
      `another rclone (process ${user}) works on the cache folder ${cacheDir}; end it, or the daemon that it belongs to, or choose another cache.dir`,
    );
  await prepareMountPoint(plan.mountPoint, tools);
  const dirty = await readyCache(spec, cacheDir, tools, signal).catch((error: unknown) =>
    Promise.reject(
      new Error(`the cache folder ${cacheDir} cannot be used: ${(error as Error).message}`, { cause: error }),
    ),
  );
  signal.throwIfAborted();
  if (layering) return mountLayer(layering, (one, ended) => startLower(one, tools, ended), tools, signal);
  const lock = await lockLater(plan.mountPoint);
  try {
    const { process, notes } = await start(spec, { plan }, cacheDir, tools);
    await ready(spec, { process, notes }, tools, signal);
    const active = new ActiveMount(process, notes, tools, dirty);
    await narrowMount(spec.share, tools);
    return active;
  } finally {
    await lock();
  }
}

/** Resolves with the paths of the dirty files in it. */
async function readyCache(
  spec: ShareSpec,
  cacheDir: string,
  tools: MountingTools,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { config, log, clock, processes, secrets } = tools;
  const ownLog = log.child({ share: spec.share.name });
  await releaseReserve(cacheDir);
  // Before anything is laid aside: what comes back later is no longer looked at.
  const wasCut = await clearAfterPowerCut({
    cacheDir,
    trees: treesOf(cacheDir),
    clock,
    log: ownLog,
    processes,
    signal,
  });
  const { setAside } = await settlePlace(
    cacheDir,
    placeOf(spec, secrets),
    async () => (await pendingIn(cacheDir)).count + (await pendingInLayer(cacheDir, tools)).count > 0,
    [formerPlaceOf(spec, config(), secrets)],
  );
  if (setAside)
    log.warn(
      { share: spec.share.name, cacheDir },
      'dirty files belong to another place and wait until the share leads there again',
    );
  // What is left has survived a boot. Noted before it is mended, for what is mended looks younger than it is.
  await noteBoot(cacheDir);
  const dirty = await repairCache(cacheDir, ownLog, clock, processes);
  await refuseHiddenLayer(config(), cacheDir, tools);
  if (wasCut) await endsWithin(tools.writeOut.settle(cacheDir), LAST_WRITE_OUT_MS, clock);
  return dirty;
}
