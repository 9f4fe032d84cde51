/**
 * The way to a mount point. Whoever may rename a folder on it can put a symlink there, and lead what root mounts,
 * locks and serves by that path to any place of the machine. So nothing is mounted where another user has a hand in
 * the way, and what is done at a mount point is done in the folder that was entered, never by its path once more.
 */
import { dirname } from 'node:path';
import type { Processes, ShareConfig } from 'mountkeeper';
import type { Notice } from '../recovery/recovery-report.ts';

const TIMEOUT_MS = 5_000;
const [FILE_TYPE, SYMLINK, STICKY, OTHERS_WRITE] = [0o170_000, 0o120_000, 0o1000, 0o022];

/** First lines of a shell script: enters the folder `$1`, or ends with 9 where its path leads elsewhere. */
export const ENTER = `
cd -P -- "$1" || exit 9
[ "$PWD" = "$1" ] || { echo "$1 leads to $PWD" >&2; exit 9; }`;

/** A command that is run in the folder, which it finds as `.`. It ends with 9 where the path leads elsewhere. */
export function inFolder(
  folder: string,
  command: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  return { command: 'sh', args: ['-c', `${ENTER}\nshift\nexec "$@"`, 'sh', folder, ...command] };
}

export interface Passage {
  /** Who could turn the way, and where; undefined when nobody but root can. */
  readonly stranger?: string;
  /** A symlink on the way, which belongs to root. Nothing behind it was looked at. */
  readonly link?: string;
  /** Whoever makes the next folder on the way may be anybody: a part is missing, or everybody may make one. */
  readonly isOpen: boolean;
}

interface Owned {
  readonly uid: number;
  readonly mode: number;
}

const CLEAR: Passage = { isOpen: false };

/**
 * Judges all folders on the way to a mount point, from `/` downwards; with `whole` the folder itself, too, which must
 * not be mounted then. Looks by a process: a folder may hang. A daemon that is not root can be led nowhere where its
 * user may not go anyway.
 */
export async function passageTo(
  mountPoint: string,
  processes: Pick<Processes, 'run'>,
  { whole = false }: { readonly whole?: boolean } = {},
): Promise<Passage> {
  if (process.geteuid?.() !== 0) return CLEAR;
  const folders = [...foldersAbove(mountPoint), ...(whole ? [mountPoint] : [])];
  const { stdout } = await processes.run({
    command: 'stat',
    args: ['-c', '%u %f', '--', ...folders],
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
  });
  // Of those that are missing, which are the last ones, nothing is printed.
  const looked = stdout.split('\n').slice(0, -1).map(ownedBy);
  return judged(mountPoint, folders, looked);
}

function judged(mountPoint: string, folders: readonly string[], looked: readonly Owned[]): Passage {
  let isOpen = false;
  for (const [index, folder] of folders.entries()) {
    const owned = looked[index];
    if (owned === undefined) return { isOpen: true };
    // The mount point itself belongs to whom the admin wants: it cannot be renamed in a folder that is root's alone.
    if (folder === mountPoint && !isOpen) break;
    const stranger = strangerAt(folder, owned, folder === mountPoint);
    if (stranger !== undefined) return { stranger, isOpen };
    if ((owned.mode & FILE_TYPE) === SYMLINK) return { link: folder, isOpen };
    isOpen = (owned.mode & OTHERS_WRITE) !== 0;
  }
  return { isOpen };
}

/** Who could turn what lies in the folder, or the folder itself. */
function strangerAt(folder: string, { uid, mode }: Owned, isLast: boolean): string | undefined {
  if (uid !== 0) return `${folder} belongs to user ${uid}`;
  const isOthers = !isLast && (mode & FILE_TYPE) !== SYMLINK && (mode & OTHERS_WRITE) !== 0;
  // In a sticky folder, as in /tmp, nobody renames what is another's.
  if (!isOthers || (mode & STICKY) !== 0) return undefined;
  return (mode & 0o002) === 0
    ? `${folder} may be written by its group`
    : `${folder} may be written by everybody`;
}

/** Of shares whose mount points others could turn, what is said; a way that cannot be looked at now is left out. */
export async function turnableMountPoints(
  shares: readonly Pick<ShareConfig, 'name' | 'mount_point'>[],
  processes: Pick<Processes, 'run'>,
): Promise<ReadonlyMap<string, string>> {
  const ways = new Map<string, Promise<Passage>>();
  const said = new Map<string, string>();
  for (const { name, mount_point: mountPoint } of shares) {
    const folder = dirname(mountPoint);
    // The share's own status tells once it is mounted.
    const way = ways.get(folder) ?? passageTo(mountPoint, processes).catch(() => CLEAR);
    ways.set(folder, way);
    const { stranger } = await way;
    if (stranger !== undefined) said.set(name, strangerRefusal(mountPoint, stranger));
  }
  return said;
}

/** Of shares that a former version has mounted there. */
export function turnableNotices(said: ReadonlyMap<string, string>): readonly Notice[] {
  return [...said].map(([share, message]) => ({
    level: 'warning' as const,
    message: `share '${share}' is not mounted again once it is taken off: ${message}`,
  }));
}

/** What is said of a mount point whose way others can turn. */
export function strangerRefusal(mountPoint: string, stranger: string): string {
  return (
    `the mount point ${mountPoint} could be turned to any place of this machine (${stranger}), ` +
    'and the daemon would follow as root: choose a mount_point below folders that belong to root and that nobody ' +
    'else can write, or leave mount_point out; a symbolic link from the old place may lead there'
  );
}

/** `/`, `/mnt` for `/mnt/photos`. */
function foldersAbove(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), above];
}

function ownedBy(line: string): Owned {
  const [uid, mode] = line.split(' ');
  return { uid: Number(uid), mode: Number.parseInt(mode ?? '', 16) };
}
