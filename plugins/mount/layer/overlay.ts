/**
 * The overlay of one share: the remote as lower layer, a folder on the local disk as upper layer. Mounted
 * once, for as long as bindfs lives: users do not notice when rclone is replaced. Child processes mount and
 * unmount it, because each of these calls may block.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { makeFolder } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import { NO_OVERLAYFS } from './needs.ts';
import type { LayerPaths } from './paths.ts';
import { parentOf } from './upper/entry-check.ts';
import { inFolder } from '../lifecycle/passage.ts';

export type OverlayTools = { readonly processes: Processes };

export interface OverlaySpec {
  readonly shareName: string;
  readonly paths: LayerPaths;
  /** The remote's files, as bindfs shows them. */
  readonly lower: string;
  /** Where the overlay is mounted before it is moved to the mount point. */
  readonly staging: string;
  /** Programs on the share may be executed. */
  readonly exec: boolean;
  readonly readOnly: boolean;
}

export type DropSpec = Pick<OverlaySpec, 'exec' | 'readOnly'>;

const MOUNT_TIMEOUT_MS = 20_000;
const UNMOUNT_TIMEOUT_MS = 5_000;
/** The disk may stand still for long; nobody knows what was moved when this has passed. */
const MOVE_TIMEOUT_MS = 60_000;
const SOURCE_PREFIX = 'mountkeeper-layer:';

/**
 * FUSE gives files other numbers after each start of bindfs. With `index` or `nfs_export`, or with a single
 * lower layer, overlayfs looks files up by numbers that it stored earlier, and shows one file's content
 * under another's name. A second lower layer without a UUID (an empty ramfs) prevents that.
 */
const OPTIONS = 'index=off,nfs_export=off,redirect_dir=on,xino=on,metacopy=on';

/**
 * Each overlay gets its own work folder: the kernel empties it, and a lazily unmounted overlay may still be
 * using its own. Relative names and open descriptors are used so that no path is part of the mount options,
 * where commas and colons are separators.
 */
const MOUNT = `
cd -- "$1" || exit 1
mount -i -t ramfs -o ro,size=4k,mode=755 mountkeeper-nothing aside/.nothing || exit 1
exec 3<"$2" 4<aside/.nothing
mount -i -t overlay -o "lowerdir=/proc/self/fd/3:/proc/self/fd/4,upperdir=upper,workdir=work/$6,$3" "$4" "$5"
code=$?
exec 3<&- 4<&-
umount -l aside/.nothing
exit "$code"`;

/** The overlay's source in the kernel's mount table. */
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
  const { former, work } = await folders(paths).catch((error: unknown) =>
    Promise.reject(unusable(paths.folder, error)),
  );
  const options = `${flagsOf({ exec, readOnly })},${OPTIONS}`;
  const args = ['-c', MOUNT, 'sh', paths.folder, lower, options, overlaySource(shareName), staging, work];
  const { code, stderr } = await processes.run({
    command: 'sh',
    args,
    env: { LC_ALL: 'C' },
    timeoutMs: MOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(refusal(stderr, paths));
  await Promise.all(former.map((name) => rm(join(paths.work, name), { recursive: true, force: true })));
}

/** What users read where the cache's disk is full, read-only or broken. */
export function unusable(folder: string, error: unknown): Error {
  return new Error(`the cache folder ${folder} cannot be used: ${(error as Error).message}`, {
    cause: error,
  });
}

async function folders(
  paths: LayerPaths,
): Promise<{ readonly former: readonly string[]; readonly work: string }> {
  for (const folder of [paths.upper, paths.work, paths.aside, `${paths.aside}/.nothing`, paths.records])
    await makeFolder(folder);
  const former = await readdir(paths.work);
  return { former, work: basename(await mkdtemp(join(paths.work, 'of-'))) };
}

/**
 * Options of the mount itself. Symlinks cannot be followed: no remote keeps them, and a server that goes by
 * paths would be led out of the share.
 */
export function flagsOf({ exec, readOnly }: Pick<OverlaySpec, 'exec' | 'readOnly'>): string {
  return `${readOnly ? 'ro' : 'rw'},nosuid,nodev,nosymfollow${exec ? '' : ',noexec'}`;
}

/**
 * Makes the kernel drop the names that it caches for the overlay. The kernel revalidates other names with
 * rclone, but a name that was missing, or was another file, is never looked up again: it would answer
 * ENOENT or ESTALE for good. Takes 4 ms, or 224 ms with 100,000 names; does not wait for rclone. Call it
 * after every change of the lower layer.
 */
export async function dropNames(
  mountPoint: string,
  spec: DropSpec,
  { processes }: OverlayTools,
): Promise<void> {
  const command = ['mount', '-i', '-n', '-c', '-o', `remount,${flagsOf(spec)}`, 'none', '.'];
  const { code, stderr } = await processes.run({
    ...inFolder(mountPoint, command),
    timeoutMs: UNMOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`names of the overlay at ${mountPoint} not dropped: ${stderr.trim()}`);
}

/** `mount(2)` by architecture, as Node names it; elsewhere names are dropped a few milliseconds later. */
const MOUNT_CALL: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 165, arm64: 40 };
/** `statx(2)`; where it is not known, nothing is moved. */
const STATX_CALL: Readonly<Partial<Record<NodeJS.Architecture, number>>> = {
  x64: 332,
  arm64: 291,
  arm: 397,
  ppc64: 383,
  s390x: 379,
  riscv64: 291,
  loong64: 291,
};
const [MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_NOSYMFOLLOW] = [1, 2, 4, 8, 32, 256];

/**
 * Prints `+` when it is ready, then words: for each entry the time of change that its renaming gave it, or `-` when it
 * was not renamed; at last `d` when the names were dropped, or `-`. Each is renamed within its folder, which must be
 * where its path says: a user may have put a symlink to elsewhere in its place. What was changed since it was scanned
 * stays: between that look and the rename there is nothing but these two calls.
 */
const MOVE = `
use strict;
my ($mount, $statx, $flags, $overlay, $upper) = @ARGV;
local $/;
syswrite(STDOUT, "+");
my @names = split /\\0/, <STDIN>, -1;
# Cut off by the death of who was writing it: a name that is not whole would lead to another.
exit 1 unless @names % 4 == 1 && $names[-1] eq ".";
pop @names;
my ($none, $here, $data, @done, %last) = ("none", ".", "");
# Inode, and time of change in nanoseconds, of which perl's own stat knows nothing.
sub look {
  my ($path, $stats) = ($_[0], "\\0" x 256);
  die "statx(2) is not known on this processor\n" unless $statx;
  if (syscall($statx + 0, -100, $path, 0x100, 0x180, $stats) != 0) {
    # Refused for all of them, as by a container's rules: not one would ever be moved.
    die "statx: $!\n" if $!{ENOSYS} || $!{EPERM};
    return;
  }
  my ($inode, $seconds, $rest) = unpack("x32 Q x56 q L", $stats);
  return ($inode, sprintf("%d%09d", $seconds, $rest));
}
chdir($upper) or die "$upper: $!";
my $root = readlink("/proc/self/cwd");
while (my ($folder, $name, $to, $scanned) = splice @names, 0, 4) {
  my $at = $folder eq "" ? $root : "$root/$folder";
  my $is_there = chdir($at) && (readlink("/proc/self/cwd") // "") eq $at;
  my ($inode, $changed) = $is_there ? look($name) : ();
  # Renamed here by another of its names, it has changed by that.
  my $is_due = defined $inode && ($scanned eq "" || $changed eq ($last{$inode} // $scanned));
  my $is_moved = $is_due && rename($name, $to);
  $last{$inode} = (look($to))[1] // 0 if $is_moved;
  push @done, $is_moved ? $inode : "";
}
my $is_dropped = $mount && chdir($overlay) && (readlink("/proc/self/cwd") // "") eq $overlay
  && syscall($mount + 0, $none, $here, $none, $flags + 0, $data) == 0;
print join(" ", (map { $_ eq "" ? "-" : $last{$_} } @done), $is_dropped ? "d" : "-");`;

const READY = '+';

export interface Move {
  /** In the upper folder. */
  readonly path: string;
  /** Absolute. */
  readonly to: string;
  /** The ctime that it must have, in nanoseconds. Absent: it may have any. */
  readonly changedNs?: bigint | undefined;
}

/** The ctime that renaming gave an entry, in nanoseconds; undefined when it was not renamed. */
export type MovedAtNs = bigint | undefined;

/**
 * Renames entries of the upper folder and drops the kernel's names right after, in one process: in between, users
 * cannot rename or delete what was moved (ESTALE). Without `spec` no names are dropped. `begin` is called right before,
 * when starting the process takes no more time. Resolves with when each was renamed, and whether the names were
 * dropped; rejects when nothing is known of that.
 */
export async function moveThenDropNames(
  moves: readonly Move[],
  {
    upper,
    mountPoint,
    spec,
    begin,
  }: {
    readonly upper: string;
    readonly mountPoint: string;
    readonly spec: DropSpec | undefined;
    readonly begin?: (() => Promise<void>) | undefined;
  },
  { processes }: OverlayTools,
): Promise<{ readonly moved: readonly MovedAtNs[]; readonly isDropped: boolean }> {
  const mount = spec === undefined ? 0 : (MOUNT_CALL[process.arch] ?? 0);
  const statx = STATX_CALL[process.arch] ?? 0;
  const flags = spec === undefined ? 0 : remountFlags(spec);
  const told = ({ path, to, changedNs }: Move): string =>
    [parentOf(path), posix.basename(path), to, changedNs ?? '', ''].join('\0');
  const { code, stdout, stderr } = await processes.run({
    command: 'perl',
    args: ['-e', MOVE, ...[mount, statx, flags].map(String), mountPoint, upper],
    input: async () => {
      await begin?.();
      return `${moves.map(told).join('')}.`;
    },
    timeoutMs: MOVE_TIMEOUT_MS,
  });
  const words = stdout.slice(READY.length).split(' ');
  if (code !== 0 || words.length !== moves.length + 1)
    throw new Error(`entries of the write layer not moved: ${stderr.trim()}`);
  return {
    moved: words.slice(0, -1).map((word) => (word === '-' ? undefined : BigInt(word))),
    isDropped: words.at(-1) === 'd',
  };
}

/** The same as `flagsOf`, for the system call. */
function remountFlags({ exec, readOnly }: DropSpec): number {
  const always = MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOSYMFOLLOW;
  return always | (readOnly ? MS_RDONLY : 0) | (exec ? 0 : MS_NOEXEC);
}

function refusal(stderr: string, { folder }: LayerPaths): string {
  const said = stderr.trim().split('\n').at(-1) ?? '';
  if (/unknown filesystem type/i.test(said)) return NO_OVERLAYFS;
  return (
    `the write layer in ${folder} cannot be mounted (${said || 'no reason given'}); ` +
    'it needs overlayfs, and a local file system such as ext4, XFS or Btrfs under cache.dir'
  );
}

/** Removes it from its path at once; open files in it live on until they are closed. */
export async function detachOverlay(mountPoint: string, { processes }: OverlayTools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'umount',
    args: ['-i', '-l', '--', mountPoint],
    timeoutMs: UNMOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`the share could not be taken off ${mountPoint}: ${stderr.trim()}`);
}
