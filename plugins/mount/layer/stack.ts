/**
 * What lies below a share's overlay: an rclone that may be replaced at any time, and bindfs, which passes it
 * on. overlayfs keeps what it once looked up, so its lower layer must stay the same for as long as it is
 * mounted: that is bindfs, which looks up each name anew by its path, and gives it the same number again.
 * Below bindfs, a killed rclone makes way for another one while files are open and sessions go on (measured
 * on Linux 6.18 with bindfs 1.14.7; docs/decisions/0026).
 *
 * While no rclone is there, a dead FUSE mount (the guard) answers every call with an error. An empty folder
 * in its place would make everything on the remote look deleted.
 */
import { makeFolder } from 'mountkeeper';
import type { Clock, ManagedProcess, MountTable, Processes } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import type { StackPaths } from './paths.ts';

export const STACK_PREFIX = 'layer/';
/** Source of the dead mount, as the kernel shows it. */
export const GUARD_SOURCE = 'mountkeeper-away';
const PASSED_ON = 'mountkeeper-below';
const COMMAND_TIMEOUT_MS = 5_000;
const READY_MS = 10_000;
const LOOK_MS = 10;
const STOP_GRACE_MS = 1_500;
/** Mounts on top of each other that somebody has left there. */
const MOST_MOUNTS = 32;

/**
 * Nothing is kept but names and their numbers: a size that the kernel remembers would cut a file that changes
 * hands. Read-only, so the man page's warning about several threads (owners of new files) does not concern
 * it; with one, each slow read would hold up everybody. No attributes: what a remote might call
 * `trusted.overlay.…` is not to be believed.
 */
const PASS_ON = [
  '-f',
  '--multithreaded',
  '--xattr-none',
  '-o',
  `ro,noforget,attr_timeout=0,entry_timeout=0,negative_timeout=0,nosuid,nodev,fsname=${PASSED_ON}`,
];

/** A connection to nobody: it is gone when the file is closed. */
const GUARD = `
exec 3<>/dev/fuse || exit 1
mount -i -n -t fuse -o ro,nosuid,nodev,fd=3,rootmode=40000,user_id=0,group_id=0 "$2" "$1"
code=$?
exec 3>&-
exit $code`;

const PREPARE = `
mount -n --bind -- "$1" "$1" && mount -n --make-private -- "$1"`;

export interface StackTools {
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly clock: Clock;
}

export function stackKey(shareName: string): string {
  return `${STACK_PREFIX}${shareName}`;
}

/** Makes the folders, empty and cleared of whatever a former daemon left there. */
export async function prepareStack(paths: StackPaths, tools: StackTools): Promise<void> {
  await clearStack(paths, tools);
  await makeFolder(paths.folder);
  await run(
    'sh',
    ['-c', PREPARE, 'sh', paths.folder],
    'the folder below the share cannot be made private',
    tools,
  );
  for (const folder of [paths.place, paths.through, paths.fresh, paths.staging]) await makeFolder(folder);
}

/**
 * Takes all mounts away at once, also those on top of each other. Processes behind them end when nobody holds
 * them.
 */
export async function clearStack({ folder }: StackPaths, tools: StackTools): Promise<void> {
  for (let count = 0; await isMounted(folder, tools.mountTable); count += 1) {
    if (count === MOST_MOUNTS)
      throw new Error(`the folder ${folder} could not be cleared: too many mounts lie on it`);
    await detach(folder, tools);
  }
}

/** Starts bindfs. Its record is what the next daemon knows the share by. */
export async function passOn(
  shareName: string,
  paths: StackPaths,
  { fingerprint, notes }: Pick<ManagedProcess, 'fingerprint' | 'notes'>,
  tools: StackTools,
): Promise<ManagedProcess> {
  const { clock, mountTable, processes } = tools;
  const bindfs = await processes.start({
    key: stackKey(shareName),
    command: 'bindfs',
    args: [...PASS_ON, paths.source, paths.through],
    fingerprint,
    notes,
  });
  const deadline = clock.deadline(READY_MS);
  while (!(await isMounted(paths.through, mountTable))) {
    if (deadline.aborted || !bindfs.isAlive()) {
      await bindfs.stop({ graceMs: 0 });
      throw new Error(
        `bindfs does not pass on what lies below the share: ${(await bindfs.tail(1))[0] ?? 'no reason given'}`,
      );
    }
    await clock.sleep(LOOK_MS);
  }
  return bindfs;
}

/** Whether bindfs is mounted where the overlay looks. */
export function isPassedOn({ through }: StackPaths, mountTable: MountTable): Promise<boolean> {
  return isMounted(through, mountTable);
}

/** Everything below answers with an error from now on, until an rclone is moved in. */
export async function setGuard({ place }: StackPaths, tools: StackTools): Promise<void> {
  await run(
    'sh',
    ['-c', GUARD, 'sh', place, GUARD_SOURCE],
    'the place of the missing remote cannot be guarded',
    tools,
  );
}

/** Puts the rclone that is mounted at `fresh` in the place of the former one. */
export async function moveIn(shareName: string, paths: StackPaths, tools: StackTools): Promise<void> {
  await takeOff(shareName, paths, tools);
  await moveMount(paths.fresh, paths.place, tools);
}

/**
 * Takes dead or dying rclones off their place, and off the one where they are made ready; what is left is the
 * guard.
 */
export async function takeOff(shareName: string, { place }: StackPaths, tools: StackTools): Promise<void> {
  const source = deviceName(shareName);
  for (let count = 0; count < MOST_MOUNTS; count += 1) {
    if ((await tools.mountTable.find(place))?.source !== source) return;
    await detach(place, tools);
  }
}

/** Of an rclone that was ended before it was moved. */
export async function clearFresh({ fresh }: StackPaths, tools: StackTools): Promise<void> {
  for (let count = 0; count < MOST_MOUNTS && (await isMounted(fresh, tools.mountTable)); count += 1)
    await detach(fresh, tools);
}

/** In one step: there is no moment at which neither is there. */
export async function moveMount(from: string, to: string, tools: StackTools): Promise<void> {
  await run(
    'mount',
    ['-n', '-i', '--no-canonicalize', '--move', from, to],
    `what is mounted at ${from} cannot be moved`,
    tools,
  );
}

/** Ends bindfs, and with it whatever still hangs on it. */
export async function endPassingOn(bindfs: ManagedProcess): Promise<void> {
  await bindfs.stop({ graceMs: STOP_GRACE_MS });
}

async function isMounted(path: string, mountTable: MountTable): Promise<boolean> {
  return (await mountTable.find(path)) !== undefined;
}

function detach(path: string, tools: StackTools): Promise<void> {
  return run('umount', ['-i', '-n', '-l', '-c', '--', path], `${path} cannot be unmounted`, tools);
}

async function run(
  command: string,
  args: readonly string[],
  otherwise: string,
  { processes }: StackTools,
): Promise<void> {
  const { code, stderr } = await processes.run({
    command,
    args,
    env: { LC_ALL: 'C' },
    timeoutMs: COMMAND_TIMEOUT_MS,
  });
  if (code !== 0)
    throw new Error(`${otherwise} (${stderr.trim().split('\n').at(-1) ?? `${command} ended with ${code}`})`);
}
