/** Decides which steps must be done before others. */
import type { RemoteVersion } from 'mountkeeper';
import { ancestors, isInside, parentOf } from './paths.ts';
import type { Item, Known } from './plan-types.ts';
import type { PlaceRecord } from './records.ts';
import { bornMsOf } from './scan.ts';

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
  const byInode = new Map<string, Item[]>();
  for (const item of items.values()) {
    const { id, action, bytes, entry } = item;
    if (action !== 'upload' || entry === undefined) continue;
    addTo(sent, likeness(bytes, entry.modifiedNs), id);
    addTo(byInode, String(entry.inode), item);
  }
  const moves = [...items.values()].filter(({ action }) => action === 'move');
  const awaited = new Set(moves.flatMap(({ needs }) => [...needs]));
  for (const item of items.values()) {
    if (item.isDisplaced === true) continue;
    if (item.action === 'delete') orderDeletion(item, items, { known, sent, byInode, moves, awaited });
    else if (!isElsewhere(item)) need(item, items, parentOf(item.place));
  }
}

interface About {
  readonly known: Pick<Known, 'places'>;
  /** Uploads by the size and modification second of their files. */
  readonly sent: ReadonlyMap<string, string[]>;
  readonly byInode: ReadonlyMap<string, readonly Item[]>;
  readonly moves: readonly Item[];
  /** What moves wait for. */
  readonly awaited: ReadonlySet<string>;
}

function orderDeletion(item: Item, items: Items, about: About): void {
  const { known, moves, awaited } = about;
  for (const above of [item.place, ...ancestors(item.place)]) makeWait(item, items, above);
  const record = known.places.get(item.place);
  if (item.isInTheWay === true || record?.remote.kind !== 'file') return;
  // The file may have been renamed here: its content must be on the remote under the new name before the
  // old one is deleted.
  const alike = [...alikeOf(record.remote.version, about), ...sameFiles(record, about)];
  // What is in a folder that waits for its move, or in the place of what is to be moved, would never go where
  // that move waits for the deletion.
  const ahead = awaited.has(item.id) ? alike.filter((id) => !waitsForMove(items.get(id)!, moves)) : alike;
  for (const id of ahead) item.needs.add(id);
}

function alikeOf({ bytes, modifiedMs }: RemoteVersion, { sent }: Pick<About, 'sent'>): readonly string[] {
  const second = Math.floor(modifiedMs / 1_000);
  return [second - 1, second, second + 1].flatMap((one) => sent.get(`${bytes} ${one}`) ?? []);
}

/**
 * The file that was brought there, by another name: also where the remote shows another time, or none. A later file may
 * have been given its inode.
 */
function sameFiles({ proved }: PlaceRecord, { byInode }: Pick<About, 'byInode'>): readonly string[] {
  if (proved === undefined) return [];
  const provedMs = Number(BigInt(proved.changedNs) / 1_000_000n);
  const isIt = ({ entry }: Item): boolean => entry?.key === undefined || bornMsOf(entry.key) <= provedMs + 1;
  return (byInode.get(proved.inode) ?? []).filter(isIt).map(({ id }) => id);
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

function addTo<T>(map: Map<string, T[]>, key: string, value: T): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
