/**
 * Scans an upper folder: every entry with its overlayfs marks. All entries are listed, and `getfattr` reads
 * the marks of those that are new or have changed since the last scan.
 */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Processes, UpperEntry } from 'mountkeeper';
import { EntryList } from './list-entries.ts';
import { readMarks } from './marks.ts';
import type { Marks } from './marks.ts';
import { bytesOf } from './names.ts';
import { below, nameOf, parentOf } from './paths.ts';

/** How often folders that are renamed during the scan are read again. */
const MOST_TURNS = 3;

/** One entry, with what the uploader needs to know about it. */
export interface ScanEntry extends UpperEntry {
  /** Inode and time of birth, for files and folders: a later entry with the same inode has another key. */
  readonly key?: string;
  /** The mark as it is stored. */
  readonly redirect?: string;
  /** It changed during the scan: whether it has its own data is not known yet. */
  readonly isUnread?: boolean;
}

/** Result of one scan. Parents come before their entries. */
export interface Scan {
  readonly entries: ReadonlyMap<string, ScanEntry>;
  /** The state of each folder: a rename of the folder, or any entry added or removed, changes it. */
  readonly folders: ReadonlyMap<string, string>;
  /** All that it was made of: the same text where nothing has changed. */
  readonly listing?: string;
  /** A folder changed so short before, or meanwhile, that it may have changed once more by the same time. */
  readonly isYoung?: boolean;
}

export interface TimedScan extends Scan {
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Files that had left when it began, and that might come back. */
  readonly resting?: ReadonlySet<string>;
}

export interface Scanner {
  /** Rejects when the folder cannot be read completely. */
  scan(signal: AbortSignal): Promise<Scan>;
  /** True when no folder has changed since the scan: then the scan missed no rename. */
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

/** Longer than a tick of any kernel (10 ms), by which kernels before 6.13 note times. */
const TICK_MS = 20;

/** What is known about one entry, valid while its inode and ctime are unchanged. */
interface Reading {
  readonly inode: bigint;
  readonly changedNs: bigint;
  readonly key: string;
  readonly marks: Marks;
  /** It was being written to: all of this may be otherwise by now, but what it was renamed from. */
  readonly isPassing?: boolean;
  /** It can change once more without another time of change: it is read again at the next scan. */
  readonly isYoung?: boolean;
}

export interface ScannerOptions {
  /** Most entries that are read without `find`. */
  readonly fewEntries?: number | undefined;
  /** Milliseconds since the epoch; whoever scans more than once gives it. */
  readonly now?: () => number;
}

export function createScanner(
  upper: string,
  processes: Pick<Processes, 'run'>,
  { fewEntries, now = () => Infinity }: ScannerOptions = {},
): Scanner {
  const list = new EntryList(upper, processes, fewEntries, now);
  let known: ReadonlyMap<string, Reading> = new Map();
  /** The last scan, where each entry was read: the same text means the same again. */
  let last: { readonly text: string; readonly scan: Scan; readonly changedMs: number } | undefined;

  const readingsOf = async (lines: readonly Line[], signal: AbortSignal): Promise<Map<string, Reading>> => {
    const isKnown = ({ path, inode, changedNs }: Line): boolean => {
      const one = known.get(path);
      const isSame = one?.inode === inode && one.changedNs === changedNs;
      return isSame && one.isPassing !== true && one.isYoung !== true;
    };
    const marked = lines.filter(({ type }) => type === 'd' || type === 'f');
    const asked = marked.filter((line) => !isKnown(line));
    const nowMs = now();
    const marks = await readMarks(
      asked.map(({ path }) => path),
      { upper, processes, signal },
    );
    const readings = new Map(marked.filter(isKnown).map(({ path }) => [path, known.get(path)!] as const));
    for (const line of asked) {
      const reading = await readingOf(line, marks.get(line.path) ?? {}, { upper, nowMs });
      if (reading !== undefined) readings.set(line.path, reading);
    }
    return readings;
  };

  const scanOnce = async (signal: AbortSignal): Promise<Scan | undefined> => {
    const beganMs = now();
    const text = await list.read('all', signal);
    const isYoung = (changedMs: number): boolean =>
      changedMs > beganMs - TICK_MS && changedMs < now() + TICK_MS;
    if (last?.text === text) return { ...last.scan, isYoung: isYoung(last.changedMs) };
    last = undefined;
    const [root, ...lines] = linesOf(text);
    const whiteouts = await whiteoutInodes(upper, lines);
    known = await readingsOf(lines, signal);
    const folders = lines.filter(({ type }) => type === 'd');
    if (folders.some(({ path }) => !known.has(path))) return undefined;
    const entries = new Map<string, ScanEntry>();
    const parts: EntryParts = { whiteouts, readings: known, lowers: new Map([['', '']]) };
    for (const line of lines) entries.set(line.path, entryOf(line, parts));
    const newestNs = [root!, ...folders].reduce(
      (newest, { changedNs }) => (changedNs > newest ? changedNs : newest),
      0n,
    );
    const changedMs = Number(newestNs / 1_000_000n);
    const scan = {
      entries,
      folders: standOf([root!, ...folders]),
      listing: text,
      isYoung: isYoung(changedMs),
    };
    const isSteady = [...known.values()].every(({ isYoung }) => isYoung !== true);
    if (isSteady && [...entries.values()].every(isRead)) last = { text, scan, changedMs };
    return scan;
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
      if (scan.isYoung === true) return false;
      const now = standOf(linesOf(await list.read('folders', signal)));
      return (
        now.size === scan.folders.size && [...now].every(([path, line]) => scan.folders.get(path) === line)
      );
    },
  };
}

/**
 * Undefined when it is another entry by now: the marks may be that one's. Marks of a folder change only with a
 * rename. Of a file that is written to just now they are kept: one that was renamed may be in the midst of being copied
 * up, and without its mark the uploader would delete its only content at its former name.
 */
async function readingOf(
  { path, type, inode, changedNs }: Line,
  marks: Marks,
  { upper, nowMs }: { readonly upper: string; readonly nowMs: number },
): Promise<Reading | undefined> {
  // Gone, or out of reach: nothing is known of a file then, and a folder lets the scan be taken anew.
  const stats = await lstat(bytesOf(join(upper, path)), { bigint: true }).catch(() => undefined);
  if (stats?.ino !== inode) return undefined;
  const isPassing = type === 'f' && stats.ctimeNs !== changedNs;
  const isYoung = type === 'f' && Number(changedNs / 1_000_000n) > nowMs - TICK_MS;
  return {
    inode,
    changedNs,
    key: keyOf(inode, stats.birthtimeNs),
    marks,
    ...(isPassing && { isPassing }),
    ...(isYoung && { isYoung }),
  };
}

function linesOf(text: string): Line[] {
  return text.split('\0').slice(0, -1).map(lineOf);
}

/** Its kind and its marks are known, by inode and time of change, for as long as it is listed the same. */
function isRead({ kind, isUnread }: ScanEntry): boolean {
  return kind !== 'other' && isUnread !== true;
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
 * Whiteouts are character devices 0/0, all of them hard links of a few inodes; `find` does not print device
 * numbers.
 */
async function whiteoutInodes(upper: string, lines: readonly Line[]): Promise<ReadonlySet<bigint>> {
  const found = new Set<bigint>();
  const looked = new Set<bigint>();
  for (const { type, inode, path } of lines) {
    if (type !== 'c' || looked.has(inode)) continue;
    // Gone meanwhile, or its path is too long for any call: another link to it may tell.
    const stats = await lstat(bytesOf(join(upper, path))).catch(() => undefined);
    if (stats === undefined) continue;
    looked.add(inode);
    if (stats.isCharacterDevice() && stats.rdev === 0) found.add(inode);
  }
  return found;
}

interface EntryParts {
  readonly whiteouts: ReadonlySet<bigint>;
  readonly readings: ReadonlyMap<string, Reading>;
  /** The lower path of each folder so far; undefined for a folder whose lower layer is hidden. */
  readonly lowers: Map<string, string | undefined>;
}

function entryOf(line: Line, parts: EntryParts): ScanEntry {
  const { type, path, inode, bytes, modifiedNs, changedNs } = line;
  const about = { path, inode, bytes, modifiedNs, changedNs, isOpaque: false };
  if (type === 'c' && parts.whiteouts.has(inode)) return { ...about, kind: 'whiteout' };
  if (type !== 'd' && type !== 'f') return { ...about, kind: 'other' };
  return { ...about, ...markedEntry(line, parts) };
}

/** A file or folder, with its marks. */
function markedEntry(
  { type, path, inode }: Line,
  { readings, lowers }: EntryParts,
): Pick<ScanEntry, 'kind' | 'key' | 'isOpaque' | 'hasNoData' | 'isUnread'> {
  const { key, marks, isPassing } = readings.get(path) ?? { key: keyOf(inode, 0n), marks: undefined };
  if (type === 'd')
    return { kind: 'folder', key, isOpaque: marks?.isOpaque === true, ...moveOf(path, marks ?? {}, lowers) };
  const file = { kind: 'file', key, isOpaque: false, ...(isPassing === true && { isUnread: true }) } as const;
  if (marks === undefined) return { ...file, isUnread: true };
  return marks.isMetacopy === true ? { ...file, hasNoData: true, ...moveOf(path, marks, lowers) } : file;
}

/** Distinguishes an entry from a later one with the same inode. */
export function keyOf(inode: bigint, bornNs: bigint): string {
  return `${inode.toString(36)}.${bornNs.toString(36)}`;
}

/** When an entry with such a key was created, in milliseconds since the epoch. */
export function bornMsOf(key: string): number {
  return Number.parseInt(key.slice(key.indexOf('.') + 1), 36) / 1_000_000;
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
  // Renamed back, it has its own path as its mark: the remote may have moved it meanwhile.
  return redirect !== undefined && lower !== undefined ? { movedFrom: lower, redirect } : {};
}
