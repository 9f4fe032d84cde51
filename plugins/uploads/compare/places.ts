/**
 * Where on the remote each entry of the upper folder belongs. Usually that is its own path. A folder that
 * users renamed is still where it was, with all that is in it, until the remote has renamed it, too; and so
 * is a file without data.
 */
import type { MoveRecord } from './records.ts';
import type { Scan, ScanEntry } from './scan.ts';
import { ancestors, below, carried, isAtOrInside, isInside, nameOf, parentOf } from './paths.ts';

/** Something that users renamed and the remote has not. */
export interface PendingMove {
  readonly entry: ScanEntry;
  /** Where it is on the remote now. */
  readonly source: string;
  /** A former try may have brought it there: the remote has to be asked. */
  readonly going?: string;
}

export interface Places {
  /**
   * By path. Undefined for what stands where something has to be moved away first: the place is not its own
   * yet.
   */
  readonly of: ReadonlyMap<string, string | undefined>;
  /** By the path that users see. */
  readonly moves: ReadonlyMap<string, PendingMove>;
  /** Folders in which nothing that lies below shows: they themselves or one above them was made by users. */
  readonly pure: ReadonlySet<string>;
  /** What is marked otherwise than the remote has it, with where that is. */
  readonly stale: ReadonlyMap<string, string>;
  /** Where something was on the remote that users' view may still look for there, with the key of that. */
  readonly former: readonly Former[];
}

export interface Former {
  readonly key: string;
  readonly from: string;
}

type Moves = ReadonlyMap<string, MoveRecord>;

export function findPlaces(scan: Scan, known: Moves): Places {
  const origins = originsOf(scan, known);
  const moves = new Map(
    [...origins].filter(([path, { source, going }]) => source !== path || going !== undefined),
  );
  const former = [...known].flatMap(([key, move]) => (move.former ?? []).map((from) => ({ key, from })));
  const taken = [...[...moves.values()].map(({ source }) => source), ...former.map(({ from }) => from)];
  const of = new Map<string, string | undefined>();
  const pure = new Set<string>();
  for (const { path, kind, isOpaque } of scan.entries.values()) {
    const parent = parentOf(path);
    if (kind === 'folder' && (isOpaque || (pure.has(parent) && !origins.has(path)))) pure.add(path);
    of.set(path, moves.get(path)?.source ?? inherited(path, of, { taken, moves }));
  }
  return { of, moves, pure, stale: staleMarks(origins, known, pure), former };
}

/** Whether nothing that has to be moved first lies in the way of a move. */
export function isFree(
  { entry: { path, key }, source }: PendingMove,
  { of, former, moves }: Places,
): boolean {
  const parent = parentOf(path);
  if (parent !== '' && (of.has(parent) ? of.get(parent) !== parent : false)) return false;
  const isRemembered = former.some(
    (one) => one.key !== key && (isAtOrInside(path, one.from) || isInside(one.from, path)),
  );
  if (isRemembered || isInside(path, source)) return false;
  return ![...moves.values()].some(
    (other) => isAtOrInside(other.source, path) && !(other.source === path && other.entry.path === path),
  );
}

/** Where each entry with a mark, or with a record of a move, comes from; by path. */
export function originsOf({ entries }: Scan, known: Moves): Map<string, PendingMove> {
  const origins = new Map<string, PendingMove>();
  const lowers = new Map<string, string | undefined>([['', '']]);
  for (const entry of entries.values()) {
    const record = known.get(entry.key ?? '');
    if (!isFromElsewhere(entry, record)) continue;
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

/** A file that has got data since goes up as any other, once it is known where the remote has what it was. */
function isFromElsewhere({ kind, isOpaque, hasNoData }: ScanEntry, record: MoveRecord | undefined): boolean {
  if (kind === 'folder') return !isOpaque;
  return kind === 'file' && (hasNoData === true || record?.going !== undefined);
}

/**
 * A name in what the folder above shows of below, or a path as the remote had it when the mark was written,
 * or before.
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
 * What the kernel remembers may be older than the mark that stands there: while that can be, the mark is
 * stale. A file without data whose move is done needs none: it can go, but from a folder that shows nothing
 * of below.
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
    ([, { entry, source, going }]) =>
      going === undefined && !canGo(entry, source) && (isRemembered(entry) || entry.movedFrom !== source),
  );
  return new Map(stale.map(([path, { source }]) => [path, source]));
}

function inherited(
  path: string,
  of: ReadonlyMap<string, string | undefined>,
  { taken, moves }: { readonly taken: readonly string[]; readonly moves: ReadonlyMap<string, PendingMove> },
): string | undefined {
  const parent = parentOf(path);
  const above = parent === '' ? '' : of.get(parent);
  if (above === undefined) return undefined;
  const place = below(above, nameOf(path));
  // In a folder that is to be moved, another one that is to be moved out may have left its name.
  const carrier = [path, ...ancestors(path)]
    .map((one) => moves.get(one)?.source)
    .find((source) => source !== undefined);
  const isTaken = taken.some(
    (source) =>
      source !== carrier &&
      isAtOrInside(place, source) &&
      (carrier === undefined || isInside(source, carrier)),
  );
  return isTaken ? undefined : place;
}
