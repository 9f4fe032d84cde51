/**
 * The overlay of one share: what comes from the remote below, a folder of the local disk above. Mounted once,
 * for as long as bindfs lives: whatever happens to rclone, nobody above notices. Mounted and unmounted by
 * children, since each of these calls may wait.
 */
import { makeFolder } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import type { LayerPaths } from './paths.ts';

export type OverlayTools = { readonly processes: Processes };

export interface OverlaySpec {
  readonly shareName: string;
  readonly paths: LayerPaths;
  /** What comes from the remote, as bindfs shows it. */
  readonly lower: string;
  /** Where the overlay is mounted first: it is moved from there. */
  readonly staging: string;
  /** Programs on the share may be run. */
  readonly exec: boolean;
  readonly readOnly: boolean;
}

const MOUNT_TIMEOUT_MS = 20_000;
const UNMOUNT_TIMEOUT_MS = 5_000;
const SOURCE_PREFIX = 'mountkeeper-layer:';

/**
 * The numbers by which FUSE tells files apart are others after each start of bindfs. With `index` or
 * `nfs_export`, or with one lower layer alone, overlayfs looks files up by numbers that it noted earlier, and
 * shows one file's content under another's name. A second lower layer without a UUID (an empty ramfs) keeps
 * it from ever doing so.
 */
const OPTIONS = 'index=off,nfs_export=off,redirect_dir=on,xino=on,metacopy=on';

/**
 * A work folder of its own for each overlay: the kernel empties it, and one that was taken off the path may
 * still be at work in the former. Relative names and open folders: no path has to be put into the options,
 * where commas and colons part them.
 */
const MOUNT = `
cd -- "$1" || exit 1
mount -i -t ramfs -o ro,size=4k,mode=755 mountkeeper-nothing aside/.nothing || exit 1
exec 3<"$2" 4<aside/.nothing
former=$(ls work)
new=$(mktemp -d work/XXXXXXXX)
mount -i -t overlay -o "lowerdir=/proc/self/fd/3:/proc/self/fd/4,upperdir=upper,workdir=$new,$3" "$4" "$5"
code=$?
exec 3<&- 4<&-
umount -l aside/.nothing
[ "$code" -eq 0 ] || exit "$code"
cd work && rm -rf -- $former
exit 0`;

/** Shown by the kernel as the source of the overlay. */
export function overlaySource(shareName: string): string {
  return `${SOURCE_PREFIX}${shareName}`;
}

export function isOverlaySource(source: string): boolean {
  return source.startsWith(SOURCE_PREFIX);
}

/** Rejects with a plain sentence. */
export async function mountOverlay(
  { shareName, paths, lower, staging, exec, readOnly }: OverlaySpec,
  { processes }: OverlayTools,
): Promise<void> {
  for (const folder of [paths.upper, paths.work, paths.aside, `${paths.aside}/.nothing`, paths.records])
    await makeFolder(folder);
  const options = `${flagsOf({ exec, readOnly })},${OPTIONS}`;
  const args = ['-c', MOUNT, 'sh', paths.folder, lower, options, overlaySource(shareName), staging];
  const { code, stderr } = await processes.run({
    command: 'sh',
    args,
    env: { LC_ALL: 'C' },
    timeoutMs: MOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(refusal(stderr, paths));
}

function flagsOf({ exec, readOnly }: Pick<OverlaySpec, 'exec' | 'readOnly'>): string {
  return `${readOnly ? 'ro' : 'rw'},nosuid,nodev${exec ? '' : ',noexec'}`;
}

/**
 * Has the kernel drop the names that it keeps of the overlay. It asks rclone about those again and again, but
 * what it has seen to be missing, or to be another file than before, it never looks up anew: such names would
 * answer ENOENT or ESTALE for good. Takes 4 ms, or 224 ms with 100,000 names; does not wait for rclone. To be
 * called after every change of what rclone shows.
 */
export async function dropNames(
  mountPoint: string,
  spec: Pick<OverlaySpec, 'exec' | 'readOnly'>,
  { processes }: OverlayTools,
): Promise<void> {
  const args = ['-i', '-o', `remount,${flagsOf(spec)}`, mountPoint];
  const { code, stderr } = await processes.run({ command: 'mount', args, timeoutMs: UNMOUNT_TIMEOUT_MS });
  if (code !== 0) throw new Error(`names of the overlay at ${mountPoint} not dropped: ${stderr.trim()}`);
}

function refusal(stderr: string, { folder }: LayerPaths): string {
  const said = stderr.trim().split('\n').at(-1) ?? '';
  if (/unknown filesystem type/i.test(said))
    return 'the kernel has no overlayfs: load the module overlay, or set mount.write_layer = false';
  return `the write layer in ${folder} cannot be mounted (${said || 'no reason given'}); it needs overlayfs, and a local file system such as ext4, XFS or Btrfs under cache.dir`;
}

/** Off the path at once; what is open in it lives on until it is closed. */
export async function detachOverlay(mountPoint: string, { processes }: OverlayTools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'umount',
    args: ['-i', '-l', '--', mountPoint],
    timeoutMs: UNMOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`the share could not be taken off ${mountPoint}: ${stderr.trim()}`);
}
