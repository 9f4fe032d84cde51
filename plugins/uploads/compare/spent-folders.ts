/**
 * Finds folders that users created and that needlessly hide what others put into them, and what becomes visible with
 * them. Ordinary folders stay: they may be somebody's working directory.
 */
import type { LeavingEntry } from 'mountkeeper';
import { ancestors, isInside, parentOf } from './paths.ts';
import type { Conditions, Item } from './plan-types.ts';
import type { Places } from './places.ts';
import type { Scan } from './scan.ts';

export interface SpentFoldersOptions extends Pick<Conditions, 'isRested'> {
  /** Planned items: a folder that one of them concerns is still needed. */
  readonly items: ReadonlyMap<string, Item>;
  readonly places: Pick<Places, 'of' | 'pure'>;
}

export function spentFolders(
  { entries }: Scan,
  { items, places, isRested }: SpentFoldersOptions,
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
  const busy = new Set(
    [...items.values()].flatMap(({ path, place, move }) => {
      const spots = [path, place, move?.source ?? place];
      return [...spots, ...spots.flatMap(ancestors)];
    }),
  );
  return all.filter(({ path }) => !busy.has(path));
}

/** A folder and what is shown together with it: the folders in it that hide nothing by themselves. */
export function shownWith(path: string, entries: Scan['entries']): ReadonlySet<string> {
  const shown = new Set([path]);
  for (const { path: inside, kind, isOpaque } of entries.values())
    if (kind === 'folder' && !isOpaque && isInside(inside, path) && shown.has(parentOf(inside)))
      shown.add(inside);
  return shown;
}
