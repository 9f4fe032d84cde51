/** Steps at places whose names a NAS may take for one. */
import { folded, parentOf } from './paths.ts';
import type { Item } from './plan-types.ts';

/**
 * Users have deleted `A.txt` and want `a.txt`: the deletion goes by the very name, and not before an upload to the
 * other is done, which is told of the former name, since the remote may still have the file by that. What holds
 * the deletion holds the upload, too: it may end in the same place.
 */
export function linkSimilarNames(items: Map<string, Item>, wanted: Iterable<string>): void {
  const deletions = [...items.values()].filter(({ action }) => action === 'delete');
  if (deletions.length === 0) return;
  const names = new Set(deletions.map(({ place }) => folded(place)));
  const targets = [...items.values()].filter(({ action }) => action === 'move').map(({ place }) => place);
  const places = new Map<string, string[]>();
  for (const place of new Set([...wanted, ...targets])) {
    const name = folded(place);
    if (names.has(name)) places.set(name, [...(places.get(name) ?? []), place]);
  }
  for (const deletion of deletions) {
    const others = (places.get(folded(deletion.place)) ?? []).filter((place) => place !== deletion.place);
    if (others.length > 0) linkDeletion(items, deletion, others);
  }
}

function linkDeletion(items: Map<string, Item>, deletion: Item, others: readonly string[]): void {
  items.set(deletion.id, { ...deletion, isSimilar: true });
  for (const place of others) {
    linkUpload(items, deletion, place);
    // What is moved there may arrive by the very name that is deleted.
    if (deletion.hold === undefined) items.get(`move ${place}`)?.needs.add(deletion.id);
  }
}

function linkUpload(items: Map<string, Item>, deletion: Item, place: string): void {
  const upload = items.get(`upload ${place}`);
  const isBeside = parentOf(deletion.place) === parentOf(place);
  if (upload === undefined || !isBeside || deletion.isInTheWay === true) return;
  deletion.needs.add(upload.id);
  const hold = upload.hold ?? deletion.hold;
  items.set(upload.id, {
    ...upload,
    formerNames: [...(upload.formerNames ?? []), { place: deletion.place, planned: deletion.planned }],
    ...(hold !== undefined && { hold }),
  });
}
