/** Takes over what a former daemon left running. */
import type { ManagedProcess, MountEntry } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { noteBoot } from '../recovery/boot-record.ts';
import { pendingIn } from '../cache/scan.ts';
import { adoptLayer } from '../layer/layering.ts';
import type { LayeredMount } from '../layer/layered-mount.ts';
import { STACK_PREFIX } from '../layer/stack.ts';
import { ActiveMount } from './active-mount.ts';
import { SEAL_SOURCE } from './mount-point.ts';
import { narrowMount } from './mount-flags.ts';
import { fromNotes } from './mount-record.ts';
import type { MountNotes } from './mount-record.ts';
import { createRcClient } from '../rclone/remote-control.ts';
import { endFormer, startLower } from './start.ts';
import { killMount } from './unmount.ts';
import { PROCESS_PREFIX, processKey } from './tools.ts';
import type { MountingTools, MountTools } from './tools.ts';

const ADOPT_ANSWER_MS = 3_000;

/** What a former daemon left. Shares with a write layer first: their rclones are theirs to take. */
export async function adoptAll(tools: MountingTools): Promise<readonly (ActiveMount | LayeredMount)[]> {
  const [stacks, keys] = [
    await tools.processes.recorded(STACK_PREFIX),
    await tools.processes.recorded(PROCESS_PREFIX),
  ];
  const layered = (
    await Promise.all(stacks.map((key) => adoptStack(key.slice(STACK_PREFIX.length), tools)))
  ).filter((mount) => mount !== undefined);
  const others = keys.filter((key) => !layered.some(({ shareName }) => processKey(shareName) === key));
  const plain = (await Promise.all(others.map((key) => adopt(key, tools)))).filter(
    (mount) => mount !== undefined,
  );
  return [...layered, ...plain];
}

async function adoptStack(shareName: string, tools: MountingTools): Promise<LayeredMount | undefined> {
  const adopted = await adoptLayer(
    shareName,
    {
      adoptLower: () => adoptLower(processKey(shareName), tools),
      start: (layering, signal) => startLower(layering, tools, signal),
    },
    tools,
  );
  if (!adopted) {
    tools.log.warn({ share: shareName }, 'former write layer does not work and is ended');
    await endFormer(shareName, tools).catch((error: unknown) =>
      tools.log.error({ share: shareName, err: error }, 'former write layer not cleared'),
    );
    return undefined;
  }
  adopted.mount.isSealed = await isFrozen(adopted.entry, shareName, tools);
  return adopted.mount;
}

/**
 * The active mount that a record tells of. A process without its mount, or one that does not answer, is
 * ended.
 */
async function adopt(key: string, tools: MountingTools): Promise<ActiveMount | undefined> {
  const found = await working(key, tools);
  // Below an overlay that is gone it serves nobody.
  if (!found || found.notes.overlay)
    return found && endFaulty(found.process, found.notes, tools).then(() => undefined);
  const { process, notes, entry } = found;
  // A daemon of a version that took no notes may have left it.
  await noteBoot(notes.cacheDir).catch(() => undefined);
  const active = new ActiveMount(
    process,
    notes,
    tools,
    pendingIn(notes.cacheDir).then(({ paths }) => paths),
  );
  active.isSealed = await isFrozen(entry, notes.share, tools);
  // It may be of a daemon that knew nothing of it.
  const share = { name: notes.share, mount_point: entry.mountPoint, exec: mayRun(notes.share, tools) };
  if (!active.isSealed) await narrowMount(share, tools);
  return active;
}

/** The rclone below an overlay, in its place. */
async function adoptLower(key: string, tools: MountingTools): Promise<ActiveMount | undefined> {
  const found = await working(key, tools);
  if (!found) return undefined;
  await noteBoot(found.notes.cacheDir).catch(() => undefined);
  return new ActiveMount(found.process, found.notes, tools, []);
}

interface Working {
  readonly process: ManagedProcess;
  readonly notes: MountNotes;
  readonly entry: MountEntry;
}

async function working(key: string, tools: MountingTools): Promise<Working | undefined> {
  const process = await tools.processes.adopt(key);
  const notes = process && fromNotes(process);
  if (!process || !notes) return undefined;
  const entry = (await tools.mountTable.list()).find(
    (one) => one.mountPoint === notes.plan.mountPoint && one.source === deviceName(notes.share),
  );
  if (entry && (await answers(notes, tools))) return { process, notes, entry };
  tools.log.warn(
    { share: notes.share, pid: process.pid, isMounted: entry !== undefined },
    'former mount does not work and is ended',
  );
  await endFaulty(process, notes, tools);
  return undefined;
}

function mayRun(shareName: string, { config }: MountTools): boolean {
  return config().shares.some(({ name, exec }) => name === shareName && exec === true);
}

/** Never rejects. */
async function endFaulty(
  process: ManagedProcess,
  { plan, share }: MountNotes,
  tools: MountTools,
): Promise<void> {
  await killMount(process, plan.mountPoint, tools).catch((error: unknown) =>
    tools.log.error({ share, err: error }, 'former mount not cleared'),
  );
}

/** Read-only though its share is not, or covered: a daemon that ended in the middle of a drain left it so. */
async function isFrozen(
  entry: MountEntry,
  shareName: string,
  { config, mountTable }: MountTools,
): Promise<boolean> {
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
