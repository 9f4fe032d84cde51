/**
 * Looks at an upper folder: every entry in it with the marks that overlayfs keeps there. One `find` gives all
 * entries, `getfattr` the marks of what is new or has changed since the last look.
 */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Processes, UpperEntry } from 'mountkeeper';
import { readMarks } from './marks.ts';
import type { Marks } from './marks.ts';
import { below, nameOf, parentOf } from './paths.ts';

const FORMAT = '%y %i %s %T@ %C@ %P\\0';
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1_073_741_824;
/** What Node makes of bytes that are no text. */
const NO_TEXT = '\uFFFD';
/** Folders that are renamed while they are read are read again. */
const MOST_TURNS = 3;

/** One entry, with what the rest of the uploader has to know of it. */
export interface ScanEntry extends UpperEntry {
  /** Inode and time of birth, of files and folders: what gets the inode later is another one. */
  readonly key?: string;
  /** The mark as it stands there. */
  readonly redirect?: string;
  /** It changed while it was looked at: whether it has data of its own is not known yet. */
  readonly isUnread?: boolean;
}

/** What was seen in one look. Parents come before what is in them. */
export interface Scan {
  readonly entries: ReadonlyMap<string, ScanEntry>;
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

/** What is known of one entry as long as neither inode nor time of change differ. */
interface Reading {
  readonly inode: bigint;
  readonly changedNs: bigint;
  readonly key: string;
  readonly marks: Marks;
}

export function createScanner(upper: string, processes: Pick<Processes, 'run'>): Scanner {
  const find = (tests: readonly string[], signal: AbortSignal): Promise<Line[]> =>
    list(upper, tests, { processes, signal });
  let known: ReadonlyMap<string, Reading> = new Map();

  const readingsOf = async (lines: readonly Line[], signal: AbortSignal): Promise<Map<string, Reading>> => {
    const isKnown = ({ path, inode, changedNs }: Line): boolean =>
      known.get(path)?.inode === inode && known.get(path)?.changedNs === changedNs;
    const marked = lines.filter(
      ({ type, path }) => (type === 'd' || type === 'f') && !path.includes(NO_TEXT),
    );
    const asked = marked.filter((line) => !isKnown(line));
    const marks = await readMarks(
      asked.map(({ path }) => path),
      { upper, processes, signal },
    );
    const readings = new Map(marked.filter(isKnown).map(({ path }) => [path, known.get(path)!] as const));
    for (const line of asked) {
      const reading = await readingOf(line, marks.get(line.path) ?? {}, upper);
      if (reading !== undefined) readings.set(line.path, reading);
    }
    return readings;
  };

  const scanOnce = async (signal: AbortSignal): Promise<Scan | undefined> => {
    const [root, ...lines] = await find([], signal);
    const whiteouts = await whiteoutInodes(upper, lines);
    known = await readingsOf(lines, signal);
    const folders = lines.filter(({ type }) => type === 'd');
    if (folders.some(({ path }) => !path.includes(NO_TEXT) && !known.has(path))) return undefined;
    const entries = new Map<string, ScanEntry>();
    const parts: EntryParts = { upper, whiteouts, readings: known, lowers: new Map([['', '']]) };
    for (const line of lines) entries.set(line.path, await entryOf(line, parts));
    return { entries, folders: standOf([root!, ...folders]) };
  };

  return {
    scan: async (signal) => {
      for (let turn = 0; turn < MOST_TURNS; turn += 1) {
        const scan = await scanOnce(signal);
        if (scan !== undefined) return scan;
      }
      throw new Error('the upper folder cannot be read whole: folders in it are being renamed just now');
    },
    isStill: async (scan, signal) => {
      const now = standOf(await find(['-type', 'd'], signal));
      return (
        now.size === scan.folders.size && [...now].every(([path, line]) => scan.folders.get(path) === line)
      );
    },
  };
}

/**
 * Undefined for what is not the same any more: its marks may be another's. Marks of a folder change only with
 * a rename.
 */
async function readingOf(
  { path, type, inode, changedNs }: Line,
  marks: Marks,
  upper: string,
): Promise<Reading | undefined> {
  const stats = await lstat(join(upper, path), { bigint: true }).catch(() => undefined);
  if (stats?.ino !== inode || (type === 'f' && stats.ctimeNs !== changedNs)) return undefined;
  return { inode, changedNs, key: keyOf(inode, stats.birthtimeNs), marks };
}

interface Asking {
  readonly processes: Pick<Processes, 'run'>;
  readonly signal: AbortSignal;
}

/** The folder itself comes first. */
async function list(upper: string, tests: readonly string[], { processes, signal }: Asking): Promise<Line[]> {
  const { stdout, stderr, code } = await processes.run({
    command: 'find',
    args: [upper, ...tests, '-printf', FORMAT],
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    signal,
    maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  const lines = stdout.split('\0').slice(0, -1).map(lineOf);
  if (lines[0]?.path !== '')
    throw new Error(`the upper folder cannot be read: ${stderr.trim() || `find ended with ${String(code)}`}`);
  const trouble = stderr
    .split('\n')
    .find((line) => line !== '' && !line.includes('No such file or directory'));
  if (trouble !== undefined) throw new Error(`the upper folder cannot be read whole: ${trouble}`);
  return lines;
}

function standOf(folders: readonly Line[]): Map<string, string> {
  return new Map(
    folders.map(({ path, inode, modifiedNs, changedNs }) => [path, `${inode} ${modifiedNs} ${changedNs}`]),
  );
}

function lineOf(text: string): Line {
  const [type = '', inode = '0', bytes = '0', modified = '', changed = ''] = text.split(' ', 5);
  const path = text.slice(
    [type, inode, bytes, modified, changed].reduce((length, part) => length + part.length + 1, 0),
  );
  return {
    type,
    inode: BigInt(inode),
    bytes: Number(bytes),
    modifiedNs: nanoseconds(modified),
    changedNs: nanoseconds(changed),
    path,
  };
}

/** `1795318061.1309005270` as `find` prints it. */
function nanoseconds(text: string): bigint {
  const [seconds = '0', fraction = ''] = text.split('.');
  return BigInt(seconds) * 1_000_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
}

/**
 * Whiteouts are character devices 0/0, all of them links to a few inodes; `find` does not tell a device's
 * number.
 */
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
  readonly readings: ReadonlyMap<string, Reading>;
  /** For each folder so far, what it shows of below by its marks; undefined for one that shows nothing. */
  readonly lowers: Map<string, string | undefined>;
}

async function entryOf(line: Line, parts: EntryParts): Promise<ScanEntry> {
  const { type, path, inode, bytes, modifiedNs, changedNs } = line;
  const about = { path, inode, bytes, modifiedNs, changedNs, isOpaque: false };
  if (path.includes(NO_TEXT) && (await lstat(join(parts.upper, path)).catch(() => undefined)) === undefined)
    return { ...about, kind: 'other' };
  if (type === 'c' && parts.whiteouts.has(inode)) return { ...about, kind: 'whiteout' };
  if (type !== 'd' && type !== 'f') return { ...about, kind: 'other' };
  return { ...about, ...markedEntry(line, parts) };
}

/** A file or folder, with what its marks say. */
function markedEntry(
  { type, path, inode }: Line,
  { readings, lowers }: EntryParts,
): Pick<ScanEntry, 'kind' | 'key' | 'isOpaque' | 'hasNoData' | 'isUnread'> {
  const { key, marks } = readings.get(path) ?? { key: keyOf(inode, 0n), marks: undefined };
  if (type === 'd')
    return { kind: 'folder', key, isOpaque: marks?.isOpaque === true, ...moveOf(path, marks ?? {}, lowers) };
  const file = { kind: 'file', key, isOpaque: false } as const;
  if (marks === undefined) return { ...file, isUnread: true };
  return marks.isMetacopy === true ? { ...file, hasNoData: true, ...moveOf(path, marks, lowers) } : file;
}

/** Tells an entry from one that gets its inode after it. */
export function keyOf(inode: bigint, bornNs: bigint): string {
  return `${inode.toString(36)}.${bornNs.toString(36)}`;
}

function moveOf(
  path: string,
  { isOpaque = false, redirect }: Marks,
  lowers: Map<string, string | undefined>,
): Pick<ScanEntry, 'movedFrom' | 'redirect'> {
  const above = lowers.get(parentOf(path));
  let lower = above === undefined ? undefined : below(above, nameOf(path));
  if (isOpaque) lower = undefined;
  else if (redirect?.startsWith('/') === true) lower = redirect.slice(1);
  else if (redirect !== undefined && above !== undefined) lower = below(above, redirect);
  lowers.set(path, lower);
  // Renamed back, it is its own: the remote may have moved it meanwhile.
  return redirect !== undefined && lower !== undefined ? { movedFrom: lower, redirect } : {};
}
