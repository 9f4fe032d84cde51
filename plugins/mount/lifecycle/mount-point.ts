import { constants, existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { detachOverlay, isOverlaySource, overlaySource } from '../layer/overlay.ts';
import { stackPaths } from '../layer/paths.ts';
import { PLACEHOLDER_SOURCE } from '../layer/stack.ts';
import { deviceName } from '../rclone/arguments.ts';
import type { MountEntry, MountReader, MountTable, Processes } from 'mountkeeper';
import { ENTER, passageTo, strangerRefusal } from './passage.ts';
import type { Passage } from './passage.ts';

export interface MountPointTools {
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly mountReader: MountReader;
}

const TOUCH_TIMEOUT_MS = 2_000;
const DETACH_TIMEOUT_MS = 5_000;
const PREPARE_TIMEOUT_MS = 10_000;
/** Mounts may be stacked; more than this is no accident. */
const MAX_LAYERS = 16;
/** Source of the empty file system by which a former version covered a frozen share. */
export const FREEZE_SOURCE = 'mountkeeper-sealed';

/**
 * Creates the folder if necessary, refuses one that is not empty, and locks it: while no share is mounted
 * on it, a write to its path fails instead of landing on the local disk, where nobody would find it. Runs
 * in a child process, because the path may hang. Without root it stays unlocked until the share is mounted:
 * fusermount3 refuses a folder that its caller may not write to. The shell does by itself what it can: each
 * program that it starts is a process more before every mount.
 */
const PREPARE = `
[ -d "$1" ] || mkdir -p -m 755 -- "$1" || exit 10
[ -d "$1" ] || { echo "it is not a folder"; exit 11; }
cd -P -- "$1" || exit 12
[ "$PWD" = "$1" ] || { printf '%s' "$PWD"; exit 15; }
for first in * .[!.]* ..?*; do
  { [ ! -e "$first" ] && [ ! -L "$first" ]; } || { printf '%s' "$first"; exit 13; }
done
if [ "$2" -ne 0 ]; then chmod 755 -- . || exit 14; exit 0; fi
chattr +i -- . 2>/dev/null || chmod 555 -- . 2>/dev/null
exit 0`;
/** What is to be mounted. A killed daemon may have left its overlay there, which works in `work`. */
export interface PlacedShare {
  readonly share: string;
  readonly work: string;
}

const UNLOCK = `${ENTER}
chattr -i -- . 2>/dev/null; chmod 755 -- . 2>/dev/null; exit 0`;

/**
 * Removes what a dead mount left and prepares the folder. Rejects with a plain sentence, also where another user could
 * turn the path.
 */
export async function prepareMountPoint(
  path: string,
  { share, work }: PlacedShare,
  tools: MountPointTools,
): Promise<void> {
  const above = (await tools.mountTable.list()).find(
    (entry) => entry.fsType.startsWith('fuse') && path.startsWith(`${entry.mountPoint}/`),
  );
  if (above)
    throw new Error(
      `the mount point ${path} lies below another mount (${above.source} at ${above.mountPoint}); ` +
        'choose another mount_point',
    );
  const { isOpen } = await requirePassage(path, tools);
  const overlay = (await tools.mountTable.list()).findLast((entry) => entry.mountPoint === path);
  if (overlay && isOverlaySource(overlay.source) && overlay.source !== overlaySource(share))
    throw new Error(
      `another share (${overlay.source}) is already in use at ${path}; unmount it or choose another mount_point`,
    );
  await refuseOthersShare(path, { share, work }, tools);
  await clearMountPoint(path, tools, { share, active: 'refuse' });
  if (isOpen) {
    // Why it cannot be made, the script below says.
    await tools.processes.run({
      command: 'mkdir',
      args: ['-p', '-m', '755', '--', path],
      timeoutMs: PREPARE_TIMEOUT_MS,
    });
    await requirePassage(path, tools, { whole: true });
  }
  const { code, stdout, stderr } = await tools.processes.run({
    command: 'sh',
    args: ['-c', PREPARE, 'sh', path, String(process.geteuid?.())],
    timeoutMs: PREPARE_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(refusal(path, code, { stdout, stderr }));
}

/**
 * An overlay of the share's name is this daemon's to take off, unless it works in another cache and a bindfs of another
 * state folder lives for a share of that name: then it is that daemon's. A user can mount one, too, but in a folder of
 * his own.
 */
async function refuseOthersShare(
  path: string,
  { share, work }: PlacedShare,
  tools: MountPointTools,
): Promise<void> {
  const entries = await tools.mountTable.list();
  const overlay = entries.findLast(
    ({ fsType, mountPoint, source }) =>
      fsType === 'overlay' && mountPoint === path && source === overlaySource(share),
  );
  if (overlay === undefined || (await worksIn(work, overlay))) return;
  const { through } = stackPaths('/', share);
  for (const entry of entries) {
    const { fsType, mountPoint } = entry;
    if (!fsType.startsWith('fuse') || !mountPoint.endsWith(through)) continue;
    if ((await passageTo(mountPoint, tools.processes)).stranger !== undefined) continue;
    if (!(await lives(entry, tools))) continue;
    throw new Error(
      `another daemon, whose state folder is ${mountPoint.slice(0, -through.length)}, has its share "${share}" at ` +
        `${path}: end it (start and stop it once more if it was killed), or choose another mount_point`,
    );
  }
}

/** Each overlay has a folder of a random name for its work (`mountOverlay`), which the kernel tells of it. */
async function worksIn(work: string, { id }: MountEntry): Promise<boolean> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const line = lines.find((one) => one.startsWith(`${id} `)) ?? '';
  const [, name] = /,workdir=work\/(of-\w+)(?:,|$)/.exec(line) ?? [];
  return name !== undefined && existsSync(join(work, name));
}

/** Rejects with a plain sentence where the path leads elsewhere, or somebody could make it lead there. */
async function requirePassage(
  path: string,
  { processes }: MountPointTools,
  options?: { readonly whole: boolean },
): Promise<Passage> {
  const passage = await passageTo(path, processes, options);
  const { link, stranger } = passage;
  if (stranger !== undefined) throw new Error(strangerRefusal(path, stranger));
  if (link === undefined) return passage;
  const { stdout } = await processes.run({
    command: 'realpath',
    args: ['-m', '--', path],
    timeoutMs: PREPARE_TIMEOUT_MS,
  });
  throw new Error(linkRefusal(path, stdout.trimEnd()));
}

/**
 * For a daemon without root: opens the folder before the share is mounted, so that it can be locked by its
 * mode afterwards, even below the mount. The returned function locks it and closes the descriptor. Only the
 * prepared local folder is touched, never the mount.
 */
export async function lockLater(path: string): Promise<() => Promise<void>> {
  if (process.getuid?.() === 0) return () => Promise.resolve();
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  return async () => {
    try {
      await folder.chmod(0o555);
    } finally {
      await folder.close();
    }
  };
}

function refusal(
  path: string,
  code: number | null,
  said: { readonly stdout: string; readonly stderr: string },
): string {
  if (code === 13)
    return (
      `the mount point ${path} is not empty ("${said.stdout}" lies there); ` +
      'move its contents away or choose another mount_point'
    );
  if (code === 15) return linkRefusal(path, said.stdout);
  const reason =
    said.stderr
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^[^:]*: /, '') ?? '';
  return `the mount point ${path} cannot be used: ${said.stdout.trim() || reason || 'no reason given'}`;
}

function linkRefusal(path: string, real: string): string {
  return (
    `the mount point ${path} is reached through a symbolic link; ` +
    `the kernel knows it as ${real}: name that in mount_point, or its folder in mount.root`
  );
}

/** Makes a folder that is no longer a mount point usable again. Never touches a path that is mounted. */
export async function unlockMountPoint(path: string, tools: MountPointTools): Promise<void> {
  if (await tools.mountTable.find(path)) return;
  await tools.processes.run({
    command: 'sh',
    args: ['-c', UNLOCK, 'sh', path],
    timeoutMs: PREPARE_TIMEOUT_MS,
  });
}

export interface Clearing {
  /** Whose mounts they are. */
  readonly share: string;
  /** `refuse` makes room: it leaves what is alive, and takes off what is dead, whosesoever it is. */
  readonly active: 'refuse' | 'detach';
}

/** Removes every stacked mount of the share at the path. Rejects with a plain sentence at one of somebody else. */
export async function clearMountPoint(
  path: string,
  tools: MountPointTools,
  clearing: Clearing,
): Promise<void> {
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    const entry = await tools.mountTable.find(path);
    // The placeholder below a share with a write layer stays for as long as the share's overlay.
    if (!entry || entry.source === PLACEHOLDER_SOURCE) return;
    if (entry.source === FREEZE_SOURCE) await unfreeze(path, tools);
    else if (entry.source === overlaySource(clearing.share)) await detachOverlay(path, tools);
    else await clearLayer(entry, tools, clearing);
  }
  throw new Error(`the mount point ${path} could not be cleared: too many mounts lie on it`);
}

export async function unfreeze(path: string, { processes }: MountPointTools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'umount',
    args: ['-l', path],
    timeoutMs: DETACH_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`the mount point ${path} could not be cleared: ${stderr.trim()}`);
}

async function clearLayer(
  entry: MountEntry,
  tools: MountPointTools,
  { active, share }: Clearing,
): Promise<void> {
  const { mountPoint } = entry;
  const isForeign = active === 'detach' && entry.source !== deviceName(share);
  if (isForeign || !entry.fsType.startsWith('fuse')) {
    throw new Error(
      `something else (${entry.fsType}, ${entry.source}) is mounted at ${mountPoint}; ` +
        'unmount it or choose another mount_point',
    );
  }
  if (active === 'refuse' && (await lives(entry, tools))) {
    throw new Error(
      `another mount (${entry.source}) is already in use at ${mountPoint}; unmount it or choose another mount_point`,
    );
  }
  await tools.mountReader.detach(mountPoint, { timeoutMs: DETACH_TIMEOUT_MS });
}

/** What the kernel says of a FUSE mount whose process has ended. */
const DEAD = /not connected|connection abort/i;

/**
 * Dead mounts answer at once with an error; one of our own that hangs has no daemon any more and may be
 * ended. A user's own mount answers root with an error, too: it lets nobody else in.
 */
async function lives(entry: MountEntry, { mountReader }: MountPointTools): Promise<boolean> {
  try {
    await mountReader.touch(entry.mountPoint, { timeoutMs: TOUCH_TIMEOUT_MS });
    return true;
  } catch (error) {
    const isOurs = entry.source.startsWith(deviceName(''));
    if ((error as Error).name !== 'TimeoutError') return !isOurs && !DEAD.test((error as Error).message);
    if (!isOurs) return true;
  }
  await mountReader.abort(entry.deviceMinor);
  return false;
}
