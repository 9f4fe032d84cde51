/** Adopts what a former daemon left running. */
import type { ManagedProcess, MountEntry } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { noteBoot } from '../recovery/boot-note.ts';
import { adoptLayer } from '../layer/layering.ts';
import type { LayeredMount } from '../layer/layered-mount.ts';
import { STACK_PREFIX } from '../layer/stack.ts';
import { ActiveMount } from './active-mount.ts';
import { FREEZE_SOURCE } from './mount-point.ts';
import { mayRun, narrowMount } from './mount-flags.ts';
import { fromNotes, placeOf } from './mount-record.ts';
import type { MountNotes } from './mount-record.ts';
import { controlAnswers } from '../rclone/control/remote-control.ts';
import { endFormer, startLower } from './start.ts';
import { killMount } from './unmount.ts';
import { PROCESS_PREFIX, processKey } from './tools.ts';
import type { MountingTools, MountTools } from './tools.ts';

const ADOPT_ANSWER_MS = 3_000;

/**
 * Adopts everything a former daemon left. Shares with a write layer come first, because they adopt their
 * own rclones.
 */
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
  adopted.mount.isFrozen = await isFrozen(adopted.entry, shareName, tools);
  return adopted.mount;
}

/**
 * The active mount that a record describes. A process without its mount, or one that does not answer, is
 * ended.
 */
async function adopt(key: string, tools: MountingTools): Promise<ActiveMount | undefined> {
  const found = await working(key, tools);
  // An rclone below an overlay that is gone serves nobody.
  if (!found || found.notes.overlay)
    return found && endFaulty(found.process, found.notes, tools).then(() => undefined);
  const { process, notes, entry } = found;
  await noteAdopted(notes.cacheDir, tools);
  const active = new ActiveMount(process, notes, tools);
  active.isFrozen = await isFrozen(entry, notes.share, tools);
  // The mount may be from a daemon that did not set these flags yet.
  const share = {
    name: notes.share,
    mount_point: entry.mountPoint,
    exec: mayRun(notes.share, tools),
  };
  if (!active.isFrozen) await narrowMount(share, tools);
  return active;
}

/** A daemon of a version that took no notes may have left it. */
async function noteAdopted(cacheDir: string, { log }: MountTools): Promise<void> {
  await noteBoot(cacheDir).catch((error: unknown) =>
    log.warn(
      { cacheDir, err: error },
      'boot not noted; what a power cut leaves in this cache is not looked through',
    ),
  );
}

/** The rclone below an overlay, in its place. */
async function adoptLower(key: string, tools: MountingTools): Promise<ActiveMount | undefined> {
  const found = await working(key, tools);
  if (!found) return undefined;
  await noteAdopted(found.notes.cacheDir, tools);
  return new ActiveMount(found.process, found.notes, tools);
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
  if (entry && (await controlAnswers(notes.rc, tools.clock.deadline(ADOPT_ANSWER_MS))))
    return { process, notes, entry };
  tools.log.warn(
    { share: notes.share, pid: process.pid, isMounted: entry !== undefined },
    'former mount does not work and is ended',
  );
  await endFaulty(process, notes, tools);
  return undefined;
}

/** Never rejects. */
async function endFaulty(process: ManagedProcess, notes: MountNotes, tools: MountTools): Promise<void> {
  await killMount(process, placeOf(notes), tools).catch((error: unknown) =>
    tools.log.error({ share: notes.share, err: error }, 'former mount not cleared'),
  );
}

/**
 * True for a mount that is read-only or covered although its share is writable: a daemon that ended during
 * a drain left it so.
 */
async function isFrozen(
  entry: MountEntry,
  shareName: string,
  { config, mountTable }: MountTools,
): Promise<boolean> {
  const top = (await mountTable.find(entry.mountPoint)) ?? entry;
  if (top.source === FREEZE_SOURCE) return true;
  return top.readOnly && config().shares.find((share) => share.name === shareName)?.read_only === false;
}
