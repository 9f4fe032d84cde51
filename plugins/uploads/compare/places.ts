/**
 * Finds the place on the remote for each entry of the upper folder. Usually that is its own path. But a
 * folder that users renamed is still at its former place, with all its content, until it has been renamed
 * on the remote, too; the same holds for a file without data.
 */
import { isText } from './names.ts';
import type { MoveRecord } from './records.ts';
import type { Scan, ScanEntry } from './scan.ts';
import { ancestors, below, carried, isAtOrInside, isInside, nameOf, parentOf, PathIndex } from './paths.ts';

/** An entry that users renamed and the remote has not renamed yet. */
export interface PendingMove {
  readonly entry: ScanEntry;
  /** Its place on the remote now. */
  readonly source: string;
  /** An earlier attempt may have moved it there: the remote must be asked. */
  readonly going?: string;
}

export interface Places {
  /**
   * Place by path. Undefined for entries whose place is still taken by something that must be moved away
   * first.
   */
  readonly of: ReadonlyMap<string, string | undefined>;
  /** By the path that users see. */
  readonly moves: ReadonlyMap<string, PendingMove>;
  /** Folders in which nothing of the lower layer is visible, because users created them or a parent. */
  readonly pure: ReadonlySet<string>;
  /** Entries whose mark differs from the remote, with their place there. */
  readonly stale: ReadonlyMap<string, string>;
  /** Names of files that the remote has once; true for the one that stands for it there. */
  readonly shared: ReadonlyMap<string, boolean>;
  /** The same by the place on the remote that each one is to leave. */
  readonly bySource: PathIndex<PendingMove>;
  /** Former places of moved entries, where the overlay may still look for them, with the entry's key. */
  readonly former: readonly Former[];
  readonly byFormer: PathIndex<Former>;
}

export interface Former {
  readonly key: string;
  readonly from: string;
}

type Moves = ReadonlyMap<string, MoveRecord>;

export function findPlaces(scan: Scan, known: Moves): Places {
  const origins = originsOf(scan, known);
  const moves = movesOf(origins);
  const former = [...known].flatMap(([key, move]) => (move.former ?? []).map((from) => ({ key, from })));
  const taken = new Set([
    ...[...moves.values()].map(({ source }) => source),
    ...former.map(({ from }) => from),
  ]);
  const of = new Map<string, string | undefined>();
  const pure = new Set<string>();
  for (const { path, kind, isOpaque } of scan.entries.values()) {
    const parent = parentOf(path);
    if (kind === 'folder' && (isOpaque || (pure.has(parent) && !origins.has(path)))) pure.add(path);
    of.set(path, moves.get(path)?.source ?? inherited(path, of, { taken, moves }));
  }
  return {
    of,
    moves,
    shared: sharedNames(scan),
    pure,
    stale: staleMarks(origins, known, pure),
    bySource: new PathIndex([...moves.values()].map((move) => [move.source, move])),
    former,
    byFormer: new PathIndex(former.map((one) => [one.from, one])),
  };
}

/**
 * Those that the remote has elsewhere. Also what it has by the very path, where that lies in another folder than the
 * one that users see there: it has to get out of the way of that one first.
 */
function movesOf(origins: ReadonlyMap<string, PendingMove>): Map<string, PendingMove> {
  const moves = new Map<string, PendingMove>();
  // Parents come first.
  for (const [path, move] of origins) {
    const isInMoved = ancestors(path).some((folder) => (moves.get(folder)?.source ?? folder) !== folder);
    if (move.source !== path || move.going !== undefined || isInMoved) moves.set(path, move);
  }
  return moves;
}

/** Whether no other move must be done before this one. */
export function isFree(move: PendingMove, places: Places): boolean {
  const { path } = move.entry;
  if (!isTargetHere(move, places) || isInside(path, move.source)) return false;
  return places.bySource
    .atOrInside(path)
    .every((other) => other.source === path && other.entry.path === path);
}

/**
 * Whether what the remote has at its target is what users replaced: neither that place nor a folder above it is one
 * that something else has to leave.
 */
export function isTargetHere(
  { entry: { path, key } }: PendingMove,
  { of, byFormer, bySource }: Places,
): boolean {
  const parent = parentOf(path);
  if (of.has(parent) && of.get(parent) !== parent) return false;
  if (byFormer.near(path).some((one) => one.key !== key)) return false;
  return bySource.atOrAbove(path).every((other) => other.entry.path === path);
}

/** Whether what is in the way of a move waits for that move itself, and not for one that may be held. */
export function isInCircle(move: PendingMove, { bySource }: Places): boolean {
  const ahead = new Set([move]);
  for (const { entry } of ahead)
    for (const other of bySource.atOrInside(entry.path)) {
      if (other === move && entry !== move.entry) return true;
      ahead.add(other);
    }
  return false;
}

/**
 * Hard links that users made to a file which lies on the remote alone: several names, no data. Moves go by the file, so
 * one of the names stands for it; else the remote would rename it to and fro.
 */
export function sharedNames({ entries }: Scan): ReadonlyMap<string, boolean> {
  const first = new Map<string, string>();
  const shared = new Map<string, boolean>();
  for (const { path, kind, key, hasNoData } of entries.values()) {
    if (kind !== 'file' || hasNoData !== true || key === undefined) continue;
    const one = first.get(key);
    if (one === undefined) first.set(key, path);
    else shared.set(one, true).set(path, false);
  }
  return shared;
}

/** The origin of each entry that has a mark or a record of a move, by path. */
export function originsOf(scan: Scan, known: Moves): Map<string, PendingMove> {
  const { entries } = scan;
  const shared = sharedNames(scan);
  const origins = new Map<string, PendingMove>();
  const lowers = new Map<string, string | undefined>([['', '']]);
  for (const entry of entries.values()) {
    const record = known.get(entry.key ?? '');
    if (shared.get(entry.path) === false || !isFromElsewhere(entry, record)) continue;
    const source = record?.at ?? markedSource(entry, lowers.get(parentOf(entry.path)), known);
    lowers.set(entry.path, source);
    const isMarked = record !== undefined || entry.redirect !== undefined;
    if (source !== undefined && isMarked) origins.set(entry.path, { entry, source, ...goingOf(record) });
  }
  return origins;
}

function goingOf(record: MoveRecord | undefined): { readonly going?: string } {
  return record?.going === undefined ? {} : { going: record.going };
}

/**
 * A file that has data by now is uploaded like any other, once it is known where the remote has its former
 * version.
 */
function isFromElsewhere({ kind, isOpaque, hasNoData }: ScanEntry, record: MoveRecord | undefined): boolean {
  if (kind === 'folder') return !isOpaque;
  return kind === 'file' && (hasNoData === true || record?.going !== undefined);
}

/**
 * A mark is a name in the parent's lower folder, or the path on the remote at the time it was written, or
 * before that.
 */
function markedSource(entry: ScanEntry, above: string | undefined, known: Moves): string | undefined {
  const redirect = entry.redirect ?? nameOf(entry.path);
  if (!redirect.startsWith('/')) return above === undefined ? undefined : below(above, redirect);
  const path = redirect.slice(1);
  const candidates = [...known.values()].flatMap(({ at, former = [] }) =>
    former.map((from) => ({ at, from })),
  );
  const nearest = candidates
    .filter(({ from }) => isAtOrInside(path, from))
    .sort((a, b) => b.from.length - a.from.length)[0];
  return nearest === undefined ? path : carried(path, nearest.from, nearest.at);
}

/**
 * The kernel may have cached an older mark than the one on disk: while that is possible, the mark counts as
 * stale. A file without data whose move is done needs no mark and can be removed, unless its folder shows
 * nothing of the lower layer. Where the name is no text, the mark waits for another one.
 */
function staleMarks(
  origins: ReadonlyMap<string, PendingMove>,
  known: Moves,
  pure: ReadonlySet<string>,
): Map<string, string> {
  const isRemembered = ({ key = '' }: ScanEntry): boolean => (known.get(key)?.former ?? []).length > 0;
  const canGo = ({ kind, path }: ScanEntry, source: string): boolean =>
    kind === 'file' && source === path && !pure.has(parentOf(path));
  const stale = [...origins].filter(
    ([path, { entry, source, going }]) =>
      going === undefined &&
      isText(path) &&
      !canGo(entry, source) &&
      (isRemembered(entry) || entry.movedFrom !== source),
  );
  return new Map(stale.map(([path, { source }]) => [path, source]));
}

function inherited(
  path: string,
  of: ReadonlyMap<string, string | undefined>,
  {
    taken,
    moves,
  }: {
    readonly taken: ReadonlySet<string>;
    readonly moves: ReadonlyMap<string, PendingMove>;
  },
): string | undefined {
  const parent = parentOf(path);
  const above = parent === '' ? '' : of.get(parent);
  if (above === undefined) return undefined;
  const place = below(above, nameOf(path));
  // In a folder that waits for its move, an entry that waits to be moved out may still have its name.
  const carrier = [path, ...ancestors(path)]
    .map((one) => moves.get(one)?.source)
    .find((source) => source !== undefined);
  const isTaken = [place, ...ancestors(place)].some(
    (source) =>
      source !== carrier && taken.has(source) && (carrier === undefined || isInside(source, carrier)),
  );
  return isTaken ? undefined : place;
}
