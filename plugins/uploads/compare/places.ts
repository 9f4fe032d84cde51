/**
 * Where on the remote each entry of the upper folder belongs. Usually that is its own path. A folder that users renamed is
 * still where it was, with all that is in it, until the remote has renamed it, too.
 */
import type { UpperEntry } from 'mountkeeper';
import type { MoveRecord } from './records.ts';
import type { Scan } from './scan.ts';
import { ancestors, below, carried, isAtOrInside, isInside, nameOf, parentOf } from './paths.ts';

/** A folder that users renamed and the remote has not. */
export interface PendingMove {
  readonly entry: UpperEntry;
  /** Where it is on the remote now. */
  readonly source: string;
}

export interface Places {
  /** By path. Undefined for what stands where a folder has to be moved away first: the place is not its own yet. */
  readonly of: ReadonlyMap<string, string | undefined>;
  /** By the path that users see. */
  readonly moves: ReadonlyMap<string, PendingMove>;
  /** Folders in which nothing that lies below shows: they themselves or one above them was made by users. */
  readonly pure: ReadonlySet<string>;
  /** Folders whose mark of a move can go: the remote has moved them. */
  readonly moved: readonly UpperEntry[];
}

export function findPlaces(scan: Scan, known: ReadonlyMap<string, MoveRecord>): Places {
  const marked = [...scan.entries.values()].filter(({ movedFrom }) => movedFrom !== undefined);
  const moves = pendingMoves(marked, known);
  const pending = [...moves.values()].map(({ source }) => source);
  const of = new Map<string, string | undefined>();
  const pure = new Set<string>();
  for (const { path, kind, isOpaque, movedFrom } of scan.entries.values()) {
    const parent = parentOf(path);
    if (kind === 'folder' && (isOpaque || (pure.has(parent) && movedFrom === undefined))) pure.add(path);
    of.set(path, moves.get(path)?.source ?? inherited(path, of, { pending, moves }));
  }
  return { of, moves, pure, moved: marked.filter(({ path }) => !moves.has(path)) };
}

function pendingMoves(marked: readonly UpperEntry[], known: ReadonlyMap<string, MoveRecord>): Map<string, PendingMove> {
  const isPending = ({ entry, source }: PendingMove): boolean => source !== entry.path || known.get(String(entry.inode))?.going !== undefined;
  const all = marked.map((entry) => ({ entry, source: sourceOf(entry, marked, known) }));
  return new Map(all.filter(isPending).map((move) => [move.entry.path, move]));
}

function inherited(
  path: string, of: ReadonlyMap<string, string | undefined>,
  { pending, moves }: { readonly pending: readonly string[]; readonly moves: ReadonlyMap<string, PendingMove> },
): string | undefined {
  const parent = parentOf(path);
  const above = parent === '' ? '' : of.get(parent);
  if (above === undefined) return undefined;
  const place = below(above, nameOf(path));
  // In a folder that is to be moved, another one that is to be moved out may have left its name.
  const carrier = [path, ...ancestors(path)].map((one) => moves.get(one)?.source).find((source) => source !== undefined);
  const isTaken = pending.some((source) => source !== carrier && isAtOrInside(place, source) && (carrier === undefined || isInside(source, carrier)));
  return isTaken ? undefined : place;
}

/** A mark that is new speaks of names as the remote had them before the moves whose marks are still there. */
function sourceOf(entry: UpperEntry, marked: readonly UpperEntry[], known: ReadonlyMap<string, MoveRecord>): string {
  const from = entry.movedFrom ?? entry.path;
  const own = known.get(String(entry.inode));
  if (own?.from === from) return own.at;
  const done = marked
    .map((one) => ({ one, move: known.get(String(one.inode)) }))
    .filter(({ one, move }) => move !== undefined && move.from === one.movedFrom && isInside(from, move.from))
    .map(({ move }) => move!)
    .sort((a, b) => b.from.length - a.from.length)[0];
  return done === undefined ? from : carried(from, done.from, done.at);
}
