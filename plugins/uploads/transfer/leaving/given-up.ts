/** Which files can be given up, and how their versions are told apart. */
import { createHash } from 'node:crypto';
import type { QueueEntry } from 'mountkeeper';
import type { Item } from '../../compare/plan-types.ts';
import type { ScanEntry } from '../../compare/scan.ts';

/** An upload of a file whose content lies here. */
export function hasContent(item: Item): item is Item & { readonly entry: ScanEntry } {
  const { action, entry } = item;
  return action === 'upload' && entry?.kind === 'file' && entry.hasNoData !== true && entry.isUnread !== true;
}

/** Any write, and any other file of that name, makes another one. */
export function versionOf({ key = '', bytes, modifiedNs, changedNs }: ScanEntry): string {
  const all = `${key} ${bytes} ${modifiedNs} ${changedNs}`;
  return createHash('sha256').update(all).digest('hex').slice(0, 16);
}

/** For the queue's entry of it. */
export function versionIn(item: Item): Pick<QueueEntry, 'version'> {
  return hasContent(item) ? { version: versionOf(item.entry) } : {};
}
