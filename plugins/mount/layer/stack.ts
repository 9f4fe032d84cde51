/**
 * What is below a share's overlay: an rclone that may be replaced at any time, and bindfs, which mirrors
 * it. overlayfs keeps what it has looked up, so its lower layer must stay the same for as long as it is
 * mounted: that is bindfs, which resolves each name again by its path and keeps its inode number. Below
 * bindfs, a killed rclone can be replaced while files are open and sessions go on (measured on Linux 6.18
 * with bindfs 1.14.7; docs/decisions/0026).
 * While there is no rclone, a dead FUSE mount (the placeholder) answers every call with an error. An empty
 * folder in its place would make everything on the remote look deleted.
 */
import { makeFolder } from 'mountkeeper';
import type { Clock, ManagedProcess, MountTable, Processes } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import type { StackPaths } from './paths.ts';

export const STACK_PREFIX = 'layer/';
/** The placeholder's source in the kernel's mount table. */
export const PLACEHOLDER_SOURCE = 'mountkeeper-away';
const PASSED_ON = 'mountkeeper-below';
const COMMAND_TIMEOUT_MS = 5_000;
const READY_MS = 10_000;
const LOOK_MS = 10;
const STOP_GRACE_MS = 1_500;
/** Most stacked mounts that are removed from one path. */
const MOST_MOUNTS = 32;

/**
 * bindfs options. Only names and their inode numbers are cached: a cached size would truncate a file that
 * is replaced. Mounted read-only, so the man page's warning about several threads (owners of new files)
 * does not apply; with a single thread, each slow read would block everybody. No extended attributes: a
 * remote's `trusted.overlay.…` must not be believed.
 */
const PASS_ON = [
  '-f',
  '--multithreaded',
  '--xattr-none',
  '-o',
  `ro,noforget,attr_timeout=0,entry_timeout=0,negative_timeout=0,nosuid,nodev,fsname=${PASSED_ON}`,
];

/** A FUSE connection without a server: it is dead as soon as the file is closed. */
const PLACEHOLDER = `
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

/** Creates the folders, and removes whatever a former daemon left mounted there. */
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
 * Removes all mounts at once, including stacked ones. The processes behind them end when no file of theirs
 * is open.
 */
export async function clearStack({ folder }: StackPaths, tools: StackTools): Promise<void> {
  for (let count = 0; await isMounted(folder, tools.mountTable); count += 1) {
    if (count === MOST_MOUNTS)
      throw new Error(`the folder ${folder} could not be cleared: too many mounts lie on it`);
    await detach(folder, tools);
  }
}

/** Starts bindfs. The next daemon finds the share by its process record. */
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

/** Whether bindfs is mounted where the overlay expects it. */
export function isPassedOn({ through }: StackPaths, mountTable: MountTable): Promise<boolean> {
  return isMounted(through, mountTable);
}

/** Mounts the placeholder: everything below answers with an error until an rclone is moved in. */
export async function mountPlaceholder({ place }: StackPaths, tools: StackTools): Promise<void> {
  await run(
    'sh',
    ['-c', PLACEHOLDER, 'sh', place, PLACEHOLDER_SOURCE],
    'the placeholder for the missing remote cannot be mounted',
    tools,
  );
}

/** Moves the rclone mounted at `fresh` to the place of the former one. */
export async function moveIn(shareName: string, paths: StackPaths, tools: StackTools): Promise<void> {
  await takeOff(shareName, paths, tools);
  await moveMount(paths.fresh, paths.place, tools);
}

/** Removes dead or dying rclones from their place, and from `fresh`; the placeholder below stays. */
export async function takeOff(shareName: string, { place }: StackPaths, tools: StackTools): Promise<void> {
  const source = deviceName(shareName);
  for (let count = 0; count < MOST_MOUNTS; count += 1) {
    if ((await tools.mountTable.find(place))?.source !== source) return;
    await detach(place, tools);
  }
}

/** For an rclone that was ended before it was moved. */
export async function clearFresh({ fresh }: StackPaths, tools: StackTools): Promise<void> {
  for (let count = 0; count < MOST_MOUNTS && (await isMounted(fresh, tools.mountTable)); count += 1)
    await detach(fresh, tools);
}

/** Moves the mount atomically: at every moment either the old or the new one is there. */
export async function moveMount(from: string, to: string, tools: StackTools): Promise<void> {
  await run(
    'mount',
    ['-n', '-i', '--no-canonicalize', '--move', from, to],
    `what is mounted at ${from} cannot be moved`,
    tools,
  );
}

/** Ends bindfs, and with it all calls that still hang in it. */
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
