/** Steps at places whose names a NAS may take for one. */
import { folded, parentOf } from './paths.ts';
import { idOf } from './order.ts';
import type { Item } from './plan-types.ts';

/**
 * Users have deleted `A.txt` and want `a.txt`: the deletion comes after whatever brings the new name there, and
 * an upload is told of the former name, under which the remote may still have the file.
 */
export function linkSimilarNames(items: Map<string, Item>): void {
  const deletions = [...items.values()].filter(({ action }) => action === 'delete');
  if (deletions.length === 0) return;
  const byName = new Map(deletions.map((item) => [folded(item.place), item]));
  const all = [...items.values()];
  for (const item of all) {
    const deletion = item.action === 'delete' ? undefined : byName.get(folded(item.place));
    if (deletion === undefined || deletion.place === item.place) continue;
    deletion.needs.add(item.id);
    const isBeside = parentOf(deletion.place) === parentOf(item.place);
    if (item.action === 'upload' && isBeside && deletion.planned?.remote.kind === 'file')
      items.set(idOf(item.action, item.place), { ...item, formerName: deletion.place });
  }
}
