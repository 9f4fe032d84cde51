/** Starts an rclone for a share, and ends one that a former daemon left. */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { endsWithin, timeBox, writeWhole } from 'mountkeeper';
import type { ManagedProcess, Mount, ProcessRights, ShareSpec } from 'mountkeeper';
import { accessOf } from './fuse-access.ts';
import { deviceName, mountArguments, remotePath, sendArguments } from '../rclone/arguments.ts';
import { programOf } from '../rclone/installed.ts';
import { rcloneToRun } from '../releases/chosen.ts';
import { freePort } from '../rclone/control/free-port.ts';
import { endFormerStack } from '../layer/layering.ts';
import type { LayerPlan } from '../layer/layer-plan.ts';
import { ActiveMount } from './active-mount.ts';
import { fromNotes, placeOf, toNotes } from './mount-record.ts';
import type { MountNotes } from './mount-record.ts';
import { rcloneRights } from '../options/rights.ts';
import { requireSamePlace } from './mount-plan.ts';
import { removeSocket } from '../rclone/control/remote-control.ts';
import { awaitReady } from './ready.ts';
import { clearOptions, configText, keepsConfig } from '../options/remote-config.ts';
import { userOfCache } from '../cache/sole-user.ts';
import { killMount } from './unmount.ts';
import { processKey } from './tools.ts';
import type { MountingTools, MountTools } from './tools.ts';

/** Length of `sun_path` in unix(7), without its terminating zero. */
const MAX_SOCKET_BYTES = 107;
const FIRST_LOOK_MS = 1_000;
const LISTED_WITHIN_MS = 5_000;

/**
 * Starts an rclone for below an overlay, mounted where it can be moved from. What a killed one left
 * half-done in the cache, the next one throws away: it was only read.
 */
export async function startLower(
  { lowerSpec: spec, lowerPlan, overlay, cacheDir, stack }: LayerPlan,
  tools: MountingTools,
  signal: AbortSignal,
): Promise<ActiveMount> {
  await endLower(spec.share.name, tools);
  const user = await userOfCache(cacheDir);
  if (user !== undefined)
    throw new Error(`another rclone (process ${user}) works on the cache folder ${cacheDir}`);
  signal.throwIfAborted();
  const { process, notes } = await start(spec, { plan: lowerPlan, overlay }, cacheDir, tools);
  try {
    await ready(
      spec,
      { process, notes: { ...notes, plan: { ...lowerPlan, mountPoint: stack.fresh } } },
      tools,
      signal,
    );
  } catch (error) {
    // What it has to read may have changed.
    knownRights.delete(lowerPlan);
    throw error;
  }
  const active = new ActiveMount(process, notes, tools);
  // Before anybody sees an empty folder that is another one.
  await endsWithin(tools.clock, FIRST_LOOK_MS, active.root.look()).catch(() => {
    // A remote that is away tells nothing.
  });
  return active;
}

/** The same for a remote path that nobody has probed: nothing is left running unless that was listed. */
export async function startListed(
  layering: LayerPlan,
  tools: MountingTools,
  signal: AbortSignal,
): Promise<ActiveMount> {
  const lower = await startLower(layering, tools, signal);
  try {
    if (!lower.root.isListed) await timeBox(tools.clock, LISTED_WITHIN_MS, lower.root.look());
    signal.throwIfAborted();
    if (!lower.root.isListed) throw new Error(lower.root.trouble ?? 'the remote path was not listed');
    return lower;
  } catch (error) {
    await lower.kill();
    throw error;
  }
}

export async function ready(
  spec: ShareSpec,
  { process, notes }: { process: ManagedProcess; notes: MountNotes },
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  try {
    await awaitReady({ process, notes, device: deviceName(spec.share.name) }, tools, signal);
  } catch (error) {
    await killMount(process, placeOf(notes), tools).catch((cause: unknown) =>
      tools.log.error({ share: spec.share.name, err: cause }, 'failed mount not cleared'),
    );
    await removeSocket(notes.rc);
    throw error;
  } finally {
    await forgetConfig(spec, tools);
  }
}

/** Its secrets need not stay, unless rclone writes to it. */
export async function forgetConfig(spec: ShareSpec, tools: MountTools): Promise<void> {
  if (!keepsConfig(spec.connection)) await rm(configFile(spec.share.name, tools), { force: true });
}

/** Ends what a former daemon left and nobody adopted: two processes on one cache folder would damage it. */
export async function endFormer(shareName: string, tools: MountTools): Promise<void> {
  await endLower(shareName, tools);
  await endFormerStack(shareName, tools);
}

async function endLower(shareName: string, tools: MountTools): Promise<void> {
  const former = await tools.processes.adopt(processKey(shareName));
  if (!former) return;
  const notes = fromNotes(former);
  if (!notes) return void (await former.stop({ graceMs: 1_000 }));
  await killMount(former, placeOf(notes), tools);
  await removeSocket(notes.rc);
}

/**
 * `sends`: it mounts nothing, and only does what its remote control is told. Rejects with `LeadsElsewhere` where a
 * secret has changed since the plan was made, so that it would work on another NAS.
 */
export async function start(
  spec: ShareSpec,
  { plan, overlay, sends = false }: Pick<MountNotes, 'plan' | 'overlay'> & { readonly sends?: boolean },
  cacheDir: string,
  tools: MountTools,
): Promise<{ process: ManagedProcess; notes: MountNotes }> {
  const config = tools.config();
  const chosen = rcloneToRun(config.mount, tools.paths.stateDir);
  const rclone = await tools.finder.find(chosen);
  // Unknown which options are passwords: names that are known tell.
  const providers = await tools.finder.providers(chosen).catch(() => undefined);
  // Read once: what is compared is what rclone is told.
  const clear = clearOptions(spec.connection, tools.secrets);
  requireSamePlace(spec, clear, { plan, cacheDir });
  const file = configFile(spec.share.name, tools);
  // Every mount writes it anew, so nothing has to wait for the disk.
  await writeWhole(file, configText(spec.connection.type, clear, providers), { isDurable: false });
  const rc = {
    port: await freePort(),
    socket: controlSocket(tools),
    user: 'mountkeeper',
    password: randomBytes(24).toString('base64url'),
  };
  const notes: MountNotes = {
    share: spec.share.name,
    plan,
    rc,
    cacheDir,
    fs: remotePath(spec),
    nas: tools.connections()?.of(spec.connection)?.address,
    overlay,
    rclone: rclone.version,
  };
  const around = {
    ...(await accessOf()),
    configFile: file,
    cacheDir,
    rcAddress: rc.socket === undefined ? `127.0.0.1:${rc.port}` : `unix://${rc.socket}`,
    isLower: overlay !== undefined,
    isWritable: overlay?.readOnly === false,
  };
  const process = await tools.processes.start({
    key: processKey(spec.share.name),
    command: rclone.command,
    args: (sends ? sendArguments : mountArguments)(spec, config, around),
    env: { RCLONE_RC_USER: rc.user, RCLONE_RC_PASS: rc.password },
    fingerprint: plan.fingerprint,
    notes: toNotes(notes),
    rights: await rightsOf(plan, async () =>
      rcloneRights({
        processes: tools.processes,
        connection: spec.connection,
        options: clear,
        cacheDir,
        files: [(await programOf(rclone.command))?.file ?? rclone.command, file, spec.share.mount_point],
        isLower: around.isLower,
      }),
    ),
  });
  return { process, notes };
}

/** By the plan of a mount below an overlay: of the rclone that was started by it last, and came up. */
const knownRights = new WeakMap<Mount['plan'], ProcessRights | undefined>();

/** To find them out, the whole cache is looked through: not again for another rclone in the place of one that ended. */
async function rightsOf(
  plan: Mount['plan'],
  find: () => Promise<ProcessRights | undefined>,
): Promise<ProcessRights | undefined> {
  if (knownRights.has(plan)) return knownRights.get(plan);
  const rights = await find();
  knownRights.set(plan, rights);
  return rights;
}

/** Undefined when the path would be longer than the kernel allows: then rclone listens on the port itself. */
function controlSocket(tools: MountTools): string | undefined {
  const path = join(tools.paths.stateDir, 'mount', `${randomBytes(4).toString('hex')}.sock`);
  return Buffer.byteLength(path) <= MAX_SOCKET_BYTES ? path : undefined;
}

function configFile(shareName: string, tools: MountTools): string {
  return join(tools.paths.stateDir, 'mount', `${shareName}.conf`);
}
