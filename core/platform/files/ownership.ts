/**
 * Checks whether code is safe to run as the daemon's user. Anybody who can write a file, or a folder on the
 * way to it, controls what it does, so all of them must belong to root or to the daemon's user and be
 * writable by nobody else; sshd asks the same of its files. Paths are checked from `/` downwards: below a
 * folder that nobody else can write, nobody else can swap anything between the check and the use.
 */
import type { Stats } from 'node:fs';
import { constants, lstat, open, readlink } from 'node:fs/promises';
import path from 'node:path';
import { undefinedWhenMissing } from './missing.ts';

const STICKY = 0o1000;
const OTHERS_WRITE = 0o022;
const MOST_LINKS = 40;

type Owned = Pick<Stats, 'uid' | 'mode'>;

/** Thrown when somebody else could change what would be run; the message says where, who, and what to do. */
export class Untrusted extends Error {
  /** Where and who, without the advice. */
  readonly why: string;

  constructor(why: string, advice: string) {
    super(`${why}; ${advice}`);
    this.why = why;
  }
}

/** True for root and for the user of this process. */
export function isTrustedUser(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

/**
 * Throws Untrusted unless `file` belongs to root or to the daemon's user. `whole`: the folder that the
 * advice in the message is to repair recursively.
 */
export function judgeOwner(file: string, { uid }: Owned, whole?: string): void {
  if (isTrustedUser(uid)) return;
  const ours = process.geteuid?.() === 0 ? 'root' : `root or to user ${String(process.geteuid?.())}`;
  throw new Untrusted(
    `${file} belongs to user ${String(uid)}, not to ${ours}, so that user could change what runs here`,
    `look at what is in it, then run: chown ${treeOr(file, 'root', whole)}`,
  );
}

/** Throws Untrusted when anybody but its owner may write `file`, or its owner is somebody else. */
export function judgeContent(file: string, stats: Owned, whole?: string): void {
  judgeOwner(file, stats, whole);
  if ((stats.mode & OTHERS_WRITE) === 0) return;
  const who = (stats.mode & 0o002) !== 0 ? 'everybody' : 'its group';
  throw new Untrusted(
    `${file} may be written by ${who}, who could change what runs here`,
    `look at what is in it, then run: chmod ${treeOr(file, 'go-w', whole)}`,
  );
}

/** A folder on the way is repaired alone: its other contents are not ours to change. */
function treeOr(file: string, change: string, whole: string | undefined): string {
  return whole === undefined ? `${change} ${file}` : `-R ${change} ${whole}`;
}

/**
 * As `judgeContent`, for a folder that only lies on the way. Where everybody may write, the sticky bit
 * keeps others from renaming and removing what is not theirs, as in /tmp; the next part of the path is
 * checked as well.
 */
export function judgePassage(folder: string, stats: Owned): void {
  judgeOwner(folder, stats);
  if ((stats.mode & STICKY) === 0) judgeContent(folder, stats);
}

/**
 * The path with every symlink followed. Everything on the way is checked (links by their owner) before
 * anything behind it is; the caller checks the final file. Rejects with Untrusted, or as `lstat` does.
 */
export async function resolveTrusted(file: string): Promise<string> {
  // Not normalised as text: behind a symlink, `..` is the parent of the link's target.
  const rest = namesOf(path.isAbsolute(file) ? file : `${process.cwd()}/${file}`);
  let at = '/';
  let links = 0;
  judgePassage(at, await lstat(at));
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = path.join(at, name);
    const stats = await lstat(next);
    if (stats.isSymbolicLink()) {
      judgeOwner(next, stats);
      links += 1;
      if (links > MOST_LINKS) throw new Error(`${file} leads through more than ${String(MOST_LINKS)} links`);
      const target = await readlink(next);
      rest.unshift(...namesOf(target));
      if (path.isAbsolute(target)) at = '/';
      continue;
    }
    if (rest.length > 0) judgePassage(next, stats);
    at = next;
  }
  return at;
}

function namesOf(file: string): string[] {
  return file.split('/').filter((name) => name !== '' && name !== '.');
}

/**
 * The text of a file that nobody else can write. Rejects with Untrusted, or with what is wrong with the file.
 */
export async function readTrusted(file: string, mostBytes: number): Promise<string> {
  const real = await resolveTrusted(file);
  // Without O_NONBLOCK, opening a named pipe would wait for ever.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    judgeContent(real, stats);
    if (!stats.isFile()) throw new Error(`${file} is not a file`);
    if (stats.size > mostBytes) throw new Error(`${file} is larger than ${String(mostBytes)} bytes`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/**
 * For a file that is to be read, obeyed and written anew, and for folders beside it. Rejects with a sentence
 * unless it, every folder and every link on the way belong to root or to this process's user and nobody else
 * can write them: another user could lead what is written, and who gets it, to any place of this machine. What
 * is missing may be missing; the folder that it would be made in is judged then.
 */
export async function refuseForeignPlace(file: string): Promise<void> {
  try {
    const real = await resolveTrusted(file);
    judgeContent(real, await lstat(real));
  } catch (error) {
    if (error instanceof Untrusted) throw ownPlaceWanted(error);
    const { code, path: missing } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' || missing === undefined) throw error;
    await refuseForeignPlace(path.dirname(missing));
  }
}

/**
 * For a folder that root is to work in. Rejects with a sentence, which ends with the advice, unless the folder and all
 * on the way to it belong to root or to this process's user and nobody else can rename any of it. What is missing may
 * be missing: look again once it was made. Who is not root can be led nowhere where this user may not go anyway.
 */
export async function refuseForeignWay(folder: string, advice: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  try {
    const real = await resolveTrusted(folder);
    judgeOwner(real, await lstat(real));
  } catch (error) {
    if (error instanceof Untrusted) throw new Error(`${error.why}; ${advice}`, { cause: error });
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function ownPlaceWanted(cause: Untrusted): Error {
  return new Error(
    `${cause.why}; run this as the user whom all of it belongs to, ` +
      'or keep the configuration where nobody else can write',
    { cause },
  );
}

/**
 * Where another user may swap folders, root must not write. Rejects with a sentence that names the user who is
 * to run `mountkeeper COMMAND` instead.
 */
export async function refuseForeignFolder(stateDir: string, command: string): Promise<void> {
  const stats = await lstat(stateDir).catch(undefinedWhenMissing);
  if (process.geteuid?.() !== 0 || stats === undefined || stats.uid === 0) return;
  throw new Error(
    `the state folder ${stateDir} belongs to user ${String(stats.uid)}; run this as that user: ` +
      `sudo -u '#${String(stats.uid)}' mountkeeper ${command} …`,
  );
}
