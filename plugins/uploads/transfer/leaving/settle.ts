/**
 * Runs before an overlay is mounted again: its cache of marks is gone, so entries that were kept only for
 * it can be removed. Marks are rewritten to where the remote has the folders, or removed where that is
 * their own path; files without data whose move is done are removed, and so are empty folders.
 */
import { lstat, realpath, rmdir, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Processes, RemoteEntry, SettleOptions } from 'mountkeeper';
import { inFolder } from '../../compare/list-entries.ts';
import { isText, openedEntry } from '../../compare/names.ts';
import { thingOf } from '../../compare/learn.ts';
import { ancestors, parentOf } from '../../compare/paths.ts';
import { findPlaces, originsOf, sharedNames } from '../../compare/places.ts';
import type { PendingMove } from '../../compare/places.ts';
import { isFileIn, Records } from '../../compare/records.ts';
import type { PlaceRecord } from '../../compare/records.ts';
import { createScanner } from '../../compare/scan.ts';
import type { Scan, ScanEntry } from '../../compare/scan.ts';
import { arrived } from '../moves.ts';
import { adoptMoves } from '../planner.ts';
import { arrivedAt } from '../step-tools.ts';

const TIMEOUT_MS = 10_000;
const MARK = 'trusted.overlay.redirect';

interface Settling {
  readonly options: SettleOptions;
  readonly processes: Pick<Processes, 'run'>;
  readonly records: Records;
  readonly scan: Scan;
}

export async function settleUpper(options: SettleOptions, processes: Pick<Processes, 'run'>): Promise<void> {
  const stats = await lstat(options.upper, { bigint: true });
  const records = await Records.open(options.records, `${stats.ino} ${stats.birthtimeNs}`, (place) =>
    isFileIn(options.upper, place),
  );
  try {
    const scan = await createScanner(options.upper, processes).scan(options.signal);
    adoptMoves(scan, records);
    const settling = { options, processes, records, scan };
    const waiting = await findOut(settling);
    await records.saved();
    const left = await clear(settling);
    const origins = originsOf(scan, records.moves);
    const { pure } = findPlaces(scan, records.moves);
    for (const origin of origins.values()) {
      const { entry, source, going } = origin;
      if (left.has(entry.path)) continue;
      if (going === undefined) await renewMark(origin, { origins, pure }, settling);
      // On its way by a third name, its mark still names the first, where nothing is: it would show empty.
      else if (waiting.has(entry.key ?? '')) await setMark(entry.path, `/${source}`, settling);
    }
    await records.saved();
  } finally {
    await records.close();
  }
}

/**
 * Finds out the result of moves whose answer was never received. What the remote does not answer now is
 * asked again later. Resolves with the keys of those that are where they were.
 */
async function findOut({
  options: { remote, signal },
  records,
  scan,
}: Settling): Promise<ReadonlySet<string>> {
  const waiting = new Set<string>();
  for (const [key, at, going] of unanswered(scan, records)) {
    try {
      // By another spelling it may be others': the uploader finds that out.
      if ((await arrivedAt({ remote, records, signal }, going)) !== going) continue;
      const [from, to] = [await remote.stat(at, { signal }), await remote.stat(going, { signal })];
      if (from !== undefined && to === undefined) waiting.add(key);
      if (from !== undefined || to === undefined || isOthers(to, records.places.get(at))) continue;
      arrived(key, { from: at, to: going, now: thingOf(to) }, { records });
    } catch {
      // The remote does not answer: the share is mounted anyway.
      signal.throwIfAborted();
    }
  }
  return waiting;
}

/** Of what users have removed meanwhile, what they saw comes first: that is the uploader's. */
function unanswered({ entries }: Scan, { moves }: Records): [key: string, at: string, going: string][] {
  const here = new Set([...entries.values()].map(({ key }) => key));
  return [...moves].flatMap(([key, { at, going }]) =>
    going === undefined || !here.has(key) ? [] : [[key, at, going]],
  );
}

/** No folder becomes a file. */
function isOthers(now: RemoteEntry, was: PlaceRecord | undefined): boolean {
  return now.kind === 'file' && was?.remote.kind !== 'file';
}

/**
 * Resolves with the removed paths. They are recorded first, because their absence would look like a
 * deletion.
 */
async function clear(settling: Settling): Promise<ReadonlySet<string>> {
  const { options, records } = settling;
  const leaving = spent(settling);
  for (const { path } of leaving) {
    const record = records.places.get(path);
    if (record !== undefined) records.set(path, { ...record, isLeaving: true });
  }
  await records.saved();
  for (const { path, kind } of leaving) await atPlace(path, options, kind === 'folder' ? rmdir : unlink);
  for (const { path, key } of leaving) {
    records.drop(path);
    if (key !== undefined) records.setMove(key, null);
  }
  return new Set(leaving.map(({ path }) => path));
}

/**
 * Rejects where its folder has been replaced: who still works in the share through a mount that is off its path can put
 * a link there, which leads anywhere.
 */
async function atPlace(
  path: string,
  { upper }: SettleOptions,
  work: (place: string) => Promise<void>,
): Promise<void> {
  const folder = join(await realpath(upper), parentOf(path));
  await inFolder(folder, async (held) => work(join(held, basename(path))).then(() => true));
}

/** The innermost first. */
function spent({ records, scan }: Settling): ScanEntry[] {
  const { of, pure } = findPlaces(scan, records.moves);
  const origins = originsOf(scan, records.moves);
  const shared = sharedNames(scan);
  const filled = new Set<string>();
  // In one that is elsewhere on the remote, its record is about that place: it would count as deleted there.
  const isPlain = ({ kind, path }: ScanEntry): boolean =>
    kind === 'folder' && of.get(path) === path && !origins.has(path) && !pure.has(path) && !filled.has(path);
  const isArrived = (entry: ScanEntry): boolean => {
    const origin = entry.hasNoData === true && !shared.has(entry.path) ? origins.get(entry.path) : undefined;
    return origin?.source === entry.path && origin.going === undefined && !pure.has(parentOf(entry.path));
  };
  const found: ScanEntry[] = [];
  for (const entry of [...scan.entries.values()].reverse()) {
    if (isText(entry.path) && (isArrived(entry) || isPlain(entry))) found.push(entry);
    else filled.add(parentOf(entry.path));
  }
  return found;
}

interface Around {
  readonly origins: ReadonlyMap<string, PendingMove>;
  readonly pure: ReadonlySet<string>;
}

/**
 * In a folder that is elsewhere on the remote, or hides its lower folder, even an entry at its own name
 * needs a mark.
 */
async function renewMark(
  { entry, source }: PendingMove,
  { origins, pure }: Around,
  settling: Settling,
): Promise<void> {
  const { records } = settling;
  const { key = '', path, movedFrom } = entry;
  const isHome =
    source === path &&
    !pure.has(parentOf(path)) &&
    ancestors(path).every((above) => (origins.get(above)?.source ?? above) === above);
  if (!isHome && movedFrom !== source) await setMark(path, `/${source}`, settling);
  else if (isHome && movedFrom !== undefined) await setMark(path, undefined, settling);
  records.setMove(key, isHome ? null : { at: source });
}

async function setMark(
  path: string,
  value: string | undefined,
  { options, processes }: Settling,
): Promise<void> {
  const change =
    value === undefined ? ['-x', MARK] : ['-n', MARK, '-v', `0x${Buffer.from(value).toString('hex')}`];
  const write = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await processes.run({
      command: 'setfattr',
      args: [...change, ...args],
      timeoutMs: TIMEOUT_MS,
      signal: options.signal,
    });
    if (code !== 0)
      throw new Error(`the mark of ${path} in the upper folder cannot be written: ${stderr.trim()}`);
  };
  await atPlace(path, options, async (place) => {
    if (isText(path)) return write('-h', '--', place);
    // Arguments of a process are text.
    const handle = await openedEntry(place);
    try {
      await write('--', `/proc/${process.pid}/fd/${handle.fd}`);
    } finally {
      await handle.close();
    }
  });
}
