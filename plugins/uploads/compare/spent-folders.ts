/**
 * Finds folders that users created and that needlessly hide what others put into them, and what becomes visible with
 * them. Ordinary folders stay: they may be somebody's working directory.
 */
import type { LeavingEntry } from 'mountkeeper';
import { ancestors, isInside, parentOf } from './paths.ts';
import type { Conditions, Item, Known } from './plan-types.ts';
import type { Places } from './places.ts';
import type { Scan, ScanEntry } from './scan.ts';

export interface SpentFoldersOptions extends Pick<Conditions, 'isRested'> {
  /**
   * Planned items: a folder that one of them concerns is still needed. What users delete in it leaves no whiteout, so
   * until the remote has deleted it, too, it would come back.
   */
  readonly items: ReadonlyMap<string, Item>;
  readonly moves: Known['moves'];
  readonly places: Pick<Places, 'of' | 'pure'>;
}

export function spentFolders(
  { entries }: Scan,
  { items, moves, places, isRested }: SpentFoldersOptions,
): LeavingEntry[] {
  const all = [...entries.values()].filter(
    ({ path, isOpaque, changedNs }) =>
      isOpaque &&
      // What hides around it hides this, too: it comes once that one has gone.
      !places.pure.has(parentOf(path)) &&
      isRested(changedNs) &&
      places.of.get(path) === path,
  );
  if (all.length === 0) return [];
  const spots = [...items.values()].flatMap(({ path, place, move }) => [path, place, move?.source ?? place]);
  // Where the remote may have moved something that users have deleted since: no item is about it yet.
  const unsure = [...moves.values()].flatMap(({ at, going }) => (going === undefined ? [] : [at, going]));
  const busy = new Set([...spots, ...unsure].flatMap((spot) => [spot, ...ancestors(spot)]));
  const inside = shownInside(entries);
  return all
    .filter(({ path }) => !busy.has(path))
    .map((entry) => ({ ...entry, shownWith: inside.get(entry.path) ?? [] }));
}

/** By each folder that hides: those in it that hide nothing by themselves. */
function shownInside(entries: Scan['entries']): ReadonlyMap<string, readonly ScanEntry[]> {
  const hidden = new Map<string, string>();
  const inside = new Map<string, ScanEntry[]>();
  // Parents come first.
  for (const entry of entries.values()) {
    if (entry.kind !== 'folder') continue;
    const { path, isOpaque } = entry;
    const by = isOpaque ? path : hidden.get(parentOf(path));
    if (by === undefined) continue;
    hidden.set(path, by);
    if (isOpaque) inside.set(path, []);
    else inside.get(by)?.push(entry);
  }
  return inside;
}

/** A folder and what is shown together with it: the folders in it that hide nothing by themselves. */
export function shownWith(path: string, entries: Scan['entries']): ReadonlySet<string> {
  const shown = new Set([path]);
  for (const { path: inside, kind, isOpaque } of entries.values())
    if (kind === 'folder' && !isOpaque && isInside(inside, path) && shown.has(parentOf(inside)))
      shown.add(inside);
  return shown;
}
