/**
 * Folders that users made and that hide what others put into them, for no use any more. Plain ones stay:
 * users may stand in them.
 */
import type { LeavingEntry } from 'mountkeeper';
import { ancestors } from './paths.ts';
import type { Conditions, Item } from './plan-types.ts';
import type { Places } from './places.ts';
import type { Scan } from './scan.ts';

export interface SpentFoldersOptions extends Pick<Conditions, 'isRested'> {
  /** What has to be done: folders that it is about are not spent. */
  readonly items: ReadonlyMap<string, Item>;
  readonly places: Pick<Places, 'of'>;
}

export function spentFolders(
  { entries }: Scan,
  { items, places, isRested }: SpentFoldersOptions,
): LeavingEntry[] {
  const busy = new Set(
    [...items.values()].flatMap(({ path, place, move }) => {
      const spots = [path, place, move?.source ?? place];
      return [...spots, ...spots.flatMap(ancestors)];
    }),
  );
  return [...entries.values()].filter(
    ({ path, isOpaque, changedNs }) =>
      isOpaque && !busy.has(path) && isRested(changedNs) && places.of.get(path) === path,
  );
}
