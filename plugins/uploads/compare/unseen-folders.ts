/**
 * Folders that were removed before their users could see where the remote had moved them. Until its mark is renewed,
 * such a folder may show empty, and an empty one can be removed: that is no deletion of what is in it.
 */
import { PathIndex } from './paths.ts';
import type { Known } from './plan-types.ts';
import type { MoveRecord } from './records.ts';
import type { Scan } from './scan.ts';

/** Their places on the remote. */
export function unseenFolders(scan: Scan, known: Known): PathIndex<string> {
  const here = new Set([...scan.entries.values()].map(({ key }) => key));
  const gone = [...known.moves].filter(([key, move]) => isUnseen(move, known) && !here.has(key));
  return new PathIndex(gone.map(([, { at }]): [string, string] => [at, at]));
}

/** Whether it is a folder that the remote has moved, and that users may still look for at a former place. */
export function isUnseen({ at, going, former = [] }: MoveRecord, { places }: Pick<Known, 'places'>): boolean {
  return going === undefined && former.length > 0 && places.get(at)?.remote.kind === 'folder';
}
