/**
 * Looks at an upper folder: every entry in it with the marks that overlayfs keeps there. One `find` gives all entries, one `tar`
 * the marks of the folders that are new or have changed (a program that every Debian has; nothing else that Node can start
 * prints attributes of many files at once).
 */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Processes, UpperEntry } from 'mountkeeper';
import { marksIn } from './marks.ts';
import type { Marks } from './marks.ts';
import { parentOf } from './paths.ts';

const FORMAT = '%y %i %s %T@ %C@ %P\\0';
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1_073_741_824;
/** What Node makes of bytes that are no text. */
const NO_TEXT = '\uFFFD';

/** What was seen in one look. Parents come before what is in them. */
export interface Scan {
  readonly entries: ReadonlyMap<string, UpperEntry>;
  /** Inode of the upper folder itself. */
  readonly root: bigint;
  /** Folders as they were seen: a rename or anything made or removed in one changes its line. */
  readonly folders: ReadonlyMap<string, string>;
}

export interface Scanner {
  /** Rejects when the folder cannot be read whole. */
  scan(signal: AbortSignal): Promise<Scan>;
  /** True when no folder has changed since: then nothing was renamed past the eyes of that look. */
  isStill(scan: Scan, signal: AbortSignal): Promise<boolean>;
}

interface Line {
  readonly type: string;
  readonly inode: bigint;
  readonly bytes: number;
  readonly modifiedNs: bigint;
  readonly changedNs: bigint;
  readonly path: string;
}

export function createScanner(upper: string, processes: Pick<Processes, 'run'>): Scanner {
  const find = (tests: readonly string[], signal: AbortSignal): Promise<Line[]> => list(upper, tests, { processes, signal });
  let known = new Map<string, { readonly changedNs: bigint; readonly inode: bigint; readonly marks: Marks }>();

  const marksOf = async (folders: readonly Line[], signal: AbortSignal): Promise<ReadonlyMap<string, Marks>> => {
    const asked = folders.filter(({ path, inode, changedNs }) => {
      const former = known.get(path);
      return former?.inode !== inode || former.changedNs !== changedNs;
    });
    const read = asked.length === 0 ? new Map<string, Marks>() : await readMarks(upper, asked.map(({ path }) => path), { processes, signal });
    const next = new Map(folders.map((line) => {
      const marks = read.get(line.path) ?? known.get(line.path)?.marks ?? {};
      return [line.path, { inode: line.inode, changedNs: line.changedNs, marks }] as const;
    }));
    // A folder that went while it was looked at is gone at the next look.
    known = new Map([...next].filter(([path]) => read.has(path) || !asked.some((one) => one.path === path)));
    return new Map([...next].map(([path, { marks }]) => [path, marks]));
  };

  return {
    scan: async (signal) => {
      const [root, ...lines] = await find([], signal);
      const whiteouts = await whiteoutInodes(upper, lines);
      const folders = lines.filter(({ type }) => type === 'd');
      const marks = await marksOf(folders, signal);
      const entries = new Map<string, UpperEntry>();
      const lowers = new Map<string, string | undefined>([['', '']]);
      for (const line of lines) entries.set(line.path, await entryOf(line, { upper, whiteouts, marks: marks.get(line.path) ?? {}, lowers }));
      return { entries, root: root?.inode ?? 0n, folders: standOf([root!, ...folders]) };
    },
    isStill: async (scan, signal) => {
      const now = standOf(await find(['-type', 'd'], signal));
      return now.size === scan.folders.size && [...now].every(([path, line]) => scan.folders.get(path) === line);
    },
  };
}

interface Asking { readonly processes: Pick<Processes, 'run'>; readonly signal: AbortSignal }

/** The folder itself comes first. */
async function list(upper: string, tests: readonly string[], { processes, signal }: Asking): Promise<Line[]> {
  const { stdout, stderr, code } = await processes.run({
    command: 'find', args: [upper, ...tests, '-printf', FORMAT], env: { LC_ALL: 'C' }, timeoutMs: TIMEOUT_MS, signal, maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  const lines = stdout.split('\0').slice(0, -1).map(lineOf);
  if (lines[0]?.path !== '') throw new Error(`the upper folder cannot be read: ${stderr.trim() || `find ended with ${String(code)}`}`);
  const trouble = stderr.split('\n').find((line) => line !== '' && !line.includes('No such file or directory'));
  if (trouble !== undefined) throw new Error(`the upper folder cannot be read whole: ${trouble}`);
  return lines;
}

function standOf(folders: readonly Line[]): Map<string, string> {
  return new Map(folders.map(({ path, inode, modifiedNs, changedNs }) => [path, `${inode} ${modifiedNs} ${changedNs}`]));
}

function lineOf(text: string): Line {
  const [type = '', inode = '0', bytes = '0', modified = '', changed = ''] = text.split(' ', 5);
  const path = text.slice([type, inode, bytes, modified, changed].reduce((length, part) => length + part.length + 1, 0));
  return { type, inode: BigInt(inode), bytes: Number(bytes), modifiedNs: nanoseconds(modified), changedNs: nanoseconds(changed), path };
}

/** `1795318061.1309005270` as `find` prints it. */
function nanoseconds(text: string): bigint {
  const [seconds = '0', fraction = ''] = text.split('.');
  return BigInt(seconds) * 1_000_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
}

/** Whiteouts are character devices 0/0, all of them links to a few inodes; `find` does not tell a device's number. */
async function whiteoutInodes(upper: string, lines: readonly Line[]): Promise<ReadonlySet<bigint>> {
  const found = new Set<bigint>();
  const looked = new Set<bigint>();
  for (const { type, inode, path } of lines) {
    if (type !== 'c' || looked.has(inode)) continue;
    const stats = await lstat(join(upper, path)).catch(() => undefined);
    // Gone meanwhile: another link to it may tell.
    if (stats === undefined) continue;
    looked.add(inode);
    if (stats.isCharacterDevice() && stats.rdev === 0) found.add(inode);
  }
  return found;
}

interface EntryParts {
  readonly upper: string;
  readonly whiteouts: ReadonlySet<bigint>;
  readonly marks: Marks;
  /** For each folder so far, what it shows of below; undefined for one that shows nothing. */
  readonly lowers: Map<string, string | undefined>;
}

async function entryOf(line: Line, { upper, whiteouts, marks, lowers }: EntryParts): Promise<UpperEntry> {
  const { type, path, inode, bytes, modifiedNs, changedNs } = line;
  const about = { path, inode, bytes, modifiedNs, changedNs };
  if (path.includes(NO_TEXT) && (await lstat(join(upper, path)).catch(() => undefined)) === undefined) return { ...about, kind: 'other', isOpaque: false };
  if (type === 'd') {
    const movedFrom = folderMove(path, marks, lowers);
    return { ...about, kind: 'folder', isOpaque: marks.isOpaque === true, ...(movedFrom !== undefined && { movedFrom }) };
  }
  if (type === 'c' && whiteouts.has(inode)) return { ...about, kind: 'whiteout', isOpaque: false };
  return { ...about, kind: type === 'f' ? 'file' : 'other', isOpaque: false };
}

/** A redirect is a path from the share's root, or a name in what the parent shows of below. */
function folderMove(path: string, { isOpaque = false, redirect }: Marks, lowers: Map<string, string | undefined>): string | undefined {
  const above = lowers.get(parentOf(path));
  const own = above === undefined ? undefined : joined(above, path.slice(path.lastIndexOf('/') + 1));
  let lower = own;
  if (isOpaque) lower = undefined;
  else if (redirect?.startsWith('/') === true) lower = redirect.slice(1);
  else if (redirect !== undefined && above !== undefined) lower = joined(above, redirect);
  lowers.set(path, lower);
  // Renamed back, it is its own: the remote may have moved it meanwhile.
  return redirect !== undefined ? lower : undefined;
}

function joined(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

async function readMarks(upper: string, folders: readonly string[], { processes, signal }: Asking): Promise<Map<string, Marks>> {
  const { stdout } = await processes.run({
    command: 'tar',
    args: ['-C', upper, '--create', '--file=-', '--format=posix', '--no-recursion', '--ignore-failed-read', '--xattrs',
      '--xattrs-include=trusted.overlay.opaque', '--xattrs-include=trusted.overlay.redirect', '--null', '--verbatim-files-from', '--files-from=-'],
    input: folders.filter((path) => !path.includes(NO_TEXT)).map((path) => `./${path}\0`).join(''),
    timeoutMs: TIMEOUT_MS, signal, maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  return marksIn(stdout);
}
