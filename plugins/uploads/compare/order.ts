/** Decides which steps must be done before others. */
import { ancestors, isInside, parentOf } from './paths.ts';
import type { Item, Known } from './plan-types.ts';

type Items = ReadonlyMap<string, Item>;

export function idOf(action: Item['action'], place: string): string {
  return `${action} ${place}`;
}

/**
 * Sets the `needs` of each item. Moves come first, then folders, then contents; whatever blocks a step
 * comes before it.
 */
export function orderItems(items: Items, known: Pick<Known, 'places'>): void {
  const sent = new Map<string, string[]>();
  for (const { id, action, bytes, entry } of items.values()) {
    if (action === 'upload' && entry !== undefined) addTo(sent, likeness(bytes, entry.modifiedNs), id);
  }
  const moves = [...items.values()].filter(({ action }) => action === 'move');
  const awaited = new Set(moves.flatMap(({ needs }) => [...needs]));
  for (const item of items.values()) {
    if (item.isDisplaced === true) continue;
    if (item.action === 'delete') orderDeletion(item, items, { known, sent, moves, awaited });
    else if (!isElsewhere(item)) need(item, items, parentOf(item.place));
  }
}

interface About {
  readonly known: Pick<Known, 'places'>;
  /** Uploads by the size and modification second of their files. */
  readonly sent: ReadonlyMap<string, string[]>;
  readonly moves: readonly Item[];
  /** What moves wait for. */
  readonly awaited: ReadonlySet<string>;
}

function orderDeletion(item: Item, items: Items, { known, sent, moves, awaited }: About): void {
  for (const above of [item.place, ...ancestors(item.place)]) makeWait(item, items, above);
  const remote = known.places.get(item.place)?.remote;
  if (item.isInTheWay === true || remote?.kind !== 'file') return;
  // The file may have been renamed here: its content must be on the remote under the new name before the
  // old one is deleted.
  const { bytes, modifiedMs } = remote.version;
  const second = Math.floor(modifiedMs / 1_000);
  const alike = [second - 1, second, second + 1].flatMap((one) => sent.get(`${bytes} ${one}`) ?? []);
  // What is in a folder that waits for its move, or in the place of what is to be moved, would never go where
  // that move waits for the deletion.
  const ahead = awaited.has(item.id) ? alike.filter((id) => !waitsForMove(items.get(id)!, moves)) : alike;
  for (const id of ahead) item.needs.add(id);
}

function waitsForMove({ path, isDisplaced = false }: Item, moves: readonly Item[]): boolean {
  return isDisplaced || moves.some((move) => isInside(path, move.path));
}

/** Makes the deletion wait for what is at or above its place: a folder's deletion, or a new entry. */
function makeWait(deletion: Item, items: Items, above: string): void {
  for (const action of ['delete', 'upload', 'move', 'make folder'] as const) {
    if (action === 'make folder' && above !== deletion.place) continue;
    const other = items.get(idOf(action, above));
    if (other === undefined || other === deletion || isElsewhere(other)) continue;
    other.needs.add(deletion.id);
  }
}

/** It does not come to its place yet: it goes by another name first, or is only found out on the remote. */
function isElsewhere({ move }: Item): boolean {
  return move?.isDetour === true || move?.going !== undefined;
}

function need(item: Item, items: Items, folder: string): void {
  const other = items.get(idOf('make folder', folder));
  if (other !== undefined && other !== item) item.needs.add(other.id);
}

function likeness(bytes: number, modifiedNs: bigint): string {
  return `${bytes} ${modifiedNs / 1_000_000_000n}`;
}

function addTo(map: Map<string, string[]>, key: string, value: string): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
