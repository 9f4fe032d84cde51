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
import type { ManagedProcess, MountTable } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { beginBindfs } from './bindfs/start.ts';
import type { BindfsTools, StartingBindfs } from './bindfs/start.ts';
import { unusable } from './overlay.ts';
import type { StackPaths } from './paths.ts';
import { inUse } from '../lifecycle/sole-use.ts';
import { folderId } from './stack-record.ts';
import { ENTER } from '../lifecycle/passage.ts';

export const STACK_PREFIX = 'layer/';
/** The placeholder's source in the kernel's mount table. */
export const PLACEHOLDER_SOURCE = 'mountkeeper-away';
const PASSED_ON = 'mountkeeper-below';
const COMMAND_TIMEOUT_MS = 5_000;
/** Most stacked mounts that are removed from one path. */
const MOST_MOUNTS = 32;

/** Read-only, so the man page's warning about several threads (owners of new files) does not apply. */
const PASS_ON = ['-o', `ro,fsname=${PASSED_ON}`];

/** A FUSE connection without a server: it is dead as soon as the file is closed. */
const SHOW = `${ENTER}
shift
exec 3<>/dev/fuse || exit 1
mount -i -n -t fuse -o ro,nosuid,nodev,fd=3,rootmode=40000,user_id=0,group_id=0 "$2" "$1" || exit 1
exec 3>&-
[ -z "$3" ] || mount -n -i --no-canonicalize --move "$3" "$1" || exit 1
exec mount -n -i --no-canonicalize --move "$4" .`;

export type StackTools = BindfsTools;

export function stackKey(shareName: string): string {
  return `${STACK_PREFIX}${shareName}`;
}

/** Creates the folders, and removes whatever a former daemon left mounted there. */
export async function prepareStack(paths: StackPaths, tools: StackTools): Promise<void> {
  await clearStack(paths, tools);
  await makeFolder(paths.folder);
  await run(
    'mount',
    ['-n', '--bind', '--make-private', '--', paths.folder, paths.folder],
    'the folder below the share cannot be made private',
    tools,
  );
  const { place, through, fresh, staging, handles } = paths;
  await Promise.all([place, through, fresh, staging, handles].map((folder) => makeFolder(folder)));
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

/**
 * Starts bindfs, and resolves when it has the lock. The next daemon finds the share by its process record. It lives for
 * as long as the share is mounted, with the daemon or without, so it is what keeps others from `cache`: two overlays on
 * one upper folder mix up what users write, and the kernel only warns.
 */
export async function passOn(
  shareName: string,
  { paths, cache }: { readonly paths: StackPaths; readonly cache: string },
  { fingerprint, notes }: Pick<ManagedProcess, 'fingerprint' | 'notes'>,
  tools: StackTools,
): Promise<StartingBindfs> {
  await makeFolder(cache).catch((error: unknown) => Promise.reject(unusable(cache, error)));
  return beginBindfs(
    {
      key: stackKey(shareName),
      options: PASS_ON,
      source: paths.source,
      place: paths.through,
      lock: { folder: cache, taken: inUse(cache) },
      fingerprint,
      notes: { ...notes, layer: await folderId(cache) },
    },
    tools,
  );
}

/** Whether bindfs is mounted where the overlay expects it. */
export function isPassedOn({ through }: StackPaths, mountTable: MountTable): Promise<boolean> {
  return isMounted(through, mountTable);
}

/**
 * Mounts the placeholder, with which everything below answers with an error, moves the rclone mounted at `fresh`
 * over it where there is one, and then the overlay to where users see it. In one process, since they wait for it.
 */
export async function show(
  { place, fresh, staging }: StackPaths,
  { mountPoint, isFresh }: { readonly mountPoint: string; readonly isFresh: boolean },
  tools: StackTools,
): Promise<void> {
  await run(
    'sh',
    ['-c', SHOW, 'sh', mountPoint, place, PLACEHOLDER_SOURCE, isFresh ? fresh : '', staging],
    'what lies below the share cannot be put in its place',
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
async function moveMount(from: string, to: string, tools: StackTools): Promise<void> {
  await run(
    'mount',
    ['-n', '-i', '--no-canonicalize', '--move', from, to],
    `what is mounted at ${from} cannot be moved`,
    tools,
  );
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
