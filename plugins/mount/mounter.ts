import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManagedProcess, Mount, MountEntry, Mounter, MountPlan, ShareSpec } from 'mountkeeper';
import { accessOf, fuseProblem } from './access.ts';
import { deviceName, mountArguments, remotePath } from './arguments.ts';
import { noteBoot } from './boot-note.ts';
import { treesOf } from './cache-meta.ts';
import { settlePlace } from './cache-place.ts';
import { repairCache } from './cache-repair.ts';
import { createCacheRoots } from './cache-roots.ts';
import { cachedShares, pendingIn, pendingInAll } from './cache-scan.ts';
import { freePort } from './free-port.ts';
import { LivingMount } from './living-mount.ts';
import { leftovers } from './leftovers.ts';
import type { Notice } from './leftovers.ts';
import { lockLater, prepareMountPoint, SEAL_SOURCE, unlockMountPoint } from './mount-point.ts';
import { nasAddress } from './nas-address.ts';
import { narrowMount } from './mount-flags.ts';
import { fromNotes, toNotes } from './notes.ts';
import type { MountNotes } from './notes.ts';
import { cacheFolder, formerPlaceOf, placeOf, planMount } from './plan.ts';
import { clearAfterPowerCut } from './power-cut.ts';
import { probeRemote } from './probe.ts';
import { createRcClient } from './rc-client.ts';
import { awaitReady } from './ready.ts';
import { releaseReserve } from './reserve.ts';
import { locate } from './rclone.ts';
import { keepsConfig, remoteConfigText, writeRemoteConfig } from './remote-config.ts';
import { userOfCache } from './sole-user.ts';
import { killMount } from './take-down.ts';
import { PROCESS_PREFIX, processKey } from './tools.ts';
import type { MountingTools, MountTools } from './tools.ts';
import { endsWithin, WriteOut } from './write-out.ts';

const ADOPT_ANSWER_MS = 3_000;
const LAST_WRITE_OUT_MS = 3_000;

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
  const tools = { ...given, writeOut: new WriteOut(given) };
  const mountPoints = new Set<string>();
  const roots = createCacheRoots(tools.paths.stateDir);
  const rootsNow = async (): Promise<readonly [string, ...string[]]> => [tools.config().cache.dir, ...(await roots.former(tools.config().cache.dir))];
  const pathOf = (shareName: string): string => tools.config().shares.find((share) => share.name === shareName)?.remote_path ?? '';
  return {
    plan: (spec) => planMount(spec, tools.config(), tools.secrets),
    probe: (spec, signal) => probeRemote(spec, tools, signal),
    mount: async (spec, signal) => {
      await roots.note(tools.config().cache.dir);
      const mount = await mountShare(spec, tools, signal);
      mountPoints.add(spec.share.mount_point);
      return mount;
    },
    adopt: async () => {
      const mounts = (await Promise.all((await tools.processes.recorded(PROCESS_PREFIX)).map((key) => adopt(key, tools)))).filter((mount) => mount !== undefined);
      for (const mount of mounts) mountPoints.add(mount.plan.mountPoint);
      await Promise.all([tools.config().cache.dir, ...mounts.map((mount) => mount.cacheRoot)].map(roots.note)).catch((error: unknown) => tools.log.warn({ err: error }, 'folders of caches not noted'));
      return mounts;
    },
    pending: async (shareName) => pendingInAll((await rootsNow()).map((root) => join(root, shareName)), pathOf(shareName)),
    cached: async () => [...new Set((await Promise.all((await rootsNow()).map(cachedShares))).flat())],
    leftovers: async () => leftovers(...(await rootsNow())),
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
  const problem = await fuseProblem(locate);
  if (problem !== undefined) throw new Error(problem);
  await endFormer(spec.share.name, tools);
  const user = await userOfCache(cacheDir);
  if (user !== undefined) throw new Error(`another rclone (process ${user}) works on the cache folder ${cacheDir}; end it, or the daemon that it belongs to, or choose another cache.dir`);
  await prepareMountPoint(plan.mountPoint, tools);
  const dirty = await readyCache(spec, cacheDir, tools, signal)
    .catch((error: unknown) => Promise.reject(new Error(`the cache folder ${cacheDir} cannot be used: ${(error as Error).message}`, { cause: error })));
  signal.throwIfAborted();
  const lock = await lockLater(plan.mountPoint);
  try {
    const { process, notes } = await start(spec, plan, cacheDir, tools);
    await ready(spec, { process, notes }, tools, signal);
    await narrowMount(spec.share, tools);
    return new LivingMount(process, notes, tools, dirty);
  } finally {
    await lock();
  }
}

/** Resolves with the paths of the dirty files in it. */
async function readyCache(spec: ShareSpec, cacheDir: string, tools: MountingTools, signal: AbortSignal): Promise<readonly string[]> {
  const { config, log, clock, processes, secrets } = tools;
  const ownLog = log.child({ share: spec.share.name });
  await releaseReserve(cacheDir);
  // Before anything is laid aside: what comes back later is no longer looked at.
  const wasCut = await clearAfterPowerCut({ cacheDir, trees: treesOf(cacheDir), clock, log: ownLog, processes, signal });
  const { setAside } = await settlePlace(cacheDir, placeOf(spec, secrets), async () => (await pendingIn(cacheDir)).count > 0, [formerPlaceOf(spec, config(), secrets)]);
  if (setAside) log.warn({ share: spec.share.name, cacheDir }, 'dirty files belong to another place and wait until the share leads there again');
  // What is left has survived a boot. Noted before it is mended, for what is mended looks younger than it is.
  await noteBoot(cacheDir);
  const dirty = await repairCache(cacheDir, ownLog, clock, processes);
  if (wasCut) await endsWithin(tools.writeOut.settle(cacheDir), LAST_WRITE_OUT_MS, clock);
  return dirty;
}

async function ready(spec: ShareSpec, { process, notes }: { process: ManagedProcess; notes: MountNotes }, tools: MountTools, signal: AbortSignal): Promise<void> {
  try {
    await awaitReady({ process, notes, device: deviceName(spec.share.name) }, tools, signal);
  } catch (error) {
    await killMount(process, notes.plan.mountPoint, tools).catch((cause: unknown) => tools.log.error({ share: spec.share.name, err: cause }, 'failed mount not cleared'));
    throw error;
  } finally {
    if (!keepsConfig(spec.connection)) await rm(configFile(spec.share.name, tools), { force: true });
  }
}

/** One that a former daemon left and nobody adopted: two processes on one cache folder would harm it. */
async function endFormer(shareName: string, tools: MountTools): Promise<void> {
  const former = await tools.processes.adopt(processKey(shareName));
  if (!former) return;
  const mountPoint = fromNotes(former)?.plan.mountPoint;
  if (mountPoint === undefined) await former.stop({ graceMs: 1_000 });
  else await killMount(former, mountPoint, tools);
}

async function start(spec: ShareSpec, plan: MountPlan, cacheDir: string, tools: MountTools): Promise<{ process: ManagedProcess; notes: MountNotes }> {
  const config = tools.config();
  const rclone = await tools.finder.find(config.mount.rclone);
  const providers = await tools.finder.providers(config.mount.rclone).catch(() => undefined);
  const file = configFile(spec.share.name, tools);
  await writeRemoteConfig(file, await remoteConfigText(spec.connection, { command: rclone.command, processes: tools.processes, secrets: tools.secrets, providers }));
  const rc = { port: await freePort(), user: 'mountkeeper', password: randomBytes(24).toString('base64url') };
  const notes: MountNotes = { share: spec.share.name, plan, rc, cacheDir, fs: remotePath(spec), nas: nasAddress(spec.connection) };
  const around = { ...(await accessOf()), configFile: file, cacheDir, rcPort: rc.port };
  const process = await tools.processes.start({
    key: processKey(spec.share.name),
    command: rclone.command,
    args: mountArguments(spec, config, around),
    env: { RCLONE_RC_USER: rc.user, RCLONE_RC_PASS: rc.password },
    fingerprint: plan.fingerprint,
    notes: toNotes(notes),
  });
  return { process, notes };
}

function configFile(shareName: string, tools: MountTools): string {
  return join(tools.paths.stateDir, 'mount', `${shareName}.conf`);
}

/** The living mount that a record tells of. A process without its mount, or one that does not answer, is ended. */
async function adopt(key: string, tools: MountingTools): Promise<LivingMount | undefined> {
  const process = await tools.processes.adopt(key);
  const notes = process && fromNotes(process);
  if (!process || !notes) return undefined;
  const entry = (await tools.mountTable.list()).find((one) => one.mountPoint === notes.plan.mountPoint && one.source === deviceName(notes.share));
  if (entry && (await answers(notes, tools))) {
    // A daemon of a version that took no notes may have left it.
    await noteBoot(notes.cacheDir).catch(() => undefined);
    const mount = new LivingMount(process, notes, tools, pendingIn(notes.cacheDir).then(({ paths }) => paths));
    mount.isSealed = await isSealed(entry, notes.share, tools);
    // It may be of a daemon that knew nothing of it.
    const share = { name: notes.share, mount_point: entry.mountPoint, exec: mayRun(notes.share, tools) };
    if (!mount.isSealed) await narrowMount(share, tools);
    return mount;
  }
  const isMounted = entry !== undefined;
  tools.log.warn({ share: notes.share, pid: process.pid, isMounted }, 'former mount does not work and is ended');
  await killMount(process, notes.plan.mountPoint, tools).catch((error: unknown) => tools.log.error({ share: notes.share, err: error }, 'former mount not cleared'));
  return undefined;
}

function mayRun(shareName: string, { config }: MountTools): boolean {
  return config().shares.some(({ name, exec }) => name === shareName && exec === true);
}

/** Read-only though its share is not, or covered: a daemon that ended in the middle of a drain left it so. */
async function isSealed(entry: MountEntry, shareName: string, { config, mountTable }: MountTools): Promise<boolean> {
  if ((await mountTable.find(entry.mountPoint))?.source === SEAL_SOURCE) return true;
  return entry.readOnly && config().shares.find((share) => share.name === shareName)?.read_only === false;
}

async function answers(notes: MountNotes, { clock }: MountTools): Promise<boolean> {
  const rc = createRcClient(notes.rc);
  try {
    await rc.call('core/pid', {}, clock.deadline(ADOPT_ANSWER_MS));
    return true;
  } catch {
    return false;
  } finally {
    rc.close();
  }
}
