/**
 * Folders that were removed before their users could see where the remote had moved them. Until its mark is renewed,
 * such a folder may show empty, and an empty one can be removed: that is no deletion of what is in it.
 */
import { isInside, PathIndex } from './paths.ts';
import type { Places } from './places.ts';
import type { Known } from './plan-types.ts';
import { mayBeThere } from './records.ts';
import type { MoveRecord } from './records.ts';
import type { Scan } from './scan.ts';

/** Their places on the remote. */
export function unseenFolders(scan: Scan, known: Known): PathIndex<string> {
  const unseen = [...known.moves].filter(([, move]) => isUnseen(move, known));
  return new PathIndex(goneOf(unseen, scan).map(([, { at }]): [string, string] => [at, at]));
}

export interface LostMove {
  readonly key: string;
  readonly at: string;
  readonly going: string;
}

/** Folders that were removed before it was known whether the remote had moved them. */
export function lostMoves(scan: Scan, known: Known): readonly LostMove[] {
  const unanswered = [...known.moves].filter(([, move]) => isUnanswered(move, known));
  return goneOf(unanswered, scan).map(([key, { at, going = at }]) => ({ key, at, going }));
}

function goneOf(
  moves: readonly (readonly [string, MoveRecord])[],
  { entries }: Scan,
): readonly (readonly [string, MoveRecord])[] {
  if (moves.length === 0) return [];
  const here = new Set([...entries.values()].map(({ key }) => key));
  return moves.filter(([key]) => !here.has(key));
}

/** Whether it is not known where the remote has it, and it may be a folder: others' may be at either place. */
export function isUnanswered({ at, going }: MoveRecord, { places }: Pick<Known, 'places'>): boolean {
  return going !== undefined && places.get(at)?.remote.kind !== 'file';
}

/**
 * Whether users have something in a folder by its name that hides nothing: then it shows again what the remote has. Not
 * while anything in it is on record that is not here: it may have shown empty when that was removed.
 */
export function showsAgain(
  { at }: MoveRecord,
  { entries }: Scan,
  known: Known,
  { of, pure }: Places,
): boolean {
  const entry = entries.get(at);
  if (entry?.kind !== 'folder' || of.get(at) !== at || pure.has(at)) return false;
  if (known.moves.has(entry.key ?? '')) return false;
  return [...known.places].every(
    ([place, record]) => !isInside(place, at) || !mayBeThere(record) || entries.has(place),
  );
}

/** Whether it is a folder that the remote has moved, and that users may still look for at a former place. */
export function isUnseen({ at, going, former = [] }: MoveRecord, { places }: Pick<Known, 'places'>): boolean {
  return going === undefined && former.length > 0 && places.get(at)?.remote.kind === 'folder';
}
