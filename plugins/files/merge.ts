/** What the remote has in a folder and what waits for it, as one list: what users see. */
import type { CacheViewFile, UnsavedFile } from 'mountkeeper';

/** Most entries that are shown; nobody reads more. */
export const MOST_ENTRIES = 1_000;

export interface Entries<File> {
  readonly folders: readonly string[];
  readonly files: readonly File[];
  /** Number of entries that were left out. */
  readonly hidden: number;
}

export interface ShownFile extends CacheViewFile {
  /** Set while the remote does not have this content. */
  readonly unsaved?: UnsavedFile['state'];
}

const byName = new Intl.Collator(undefined, { numeric: true }).compare;

/** Sorted, folders first. */
export function firstOf<File extends { readonly name: string }>(all: Entries<File>): Entries<File> {
  const folders = [...all.folders].sort(byName).slice(0, MOST_ENTRIES);
  const files = [...all.files].sort((a, b) => byName(a.name, b.name)).slice(0, MOST_ENTRIES - folders.length);
  const left = all.folders.length + all.files.length - folders.length - files.length;
  return { folders, files, hidden: all.hidden + left };
}

/** What rclone names a file while it is being uploaded. */
const PARTIAL = /^(.+)\.[0-9a-f]{8}\.partial$/;

/** Users see their own version before the remote's, and new files before the remote has them. */
export function withUnsaved(
  { folders, files: onRemote, hidden }: Entries<CacheViewFile>,
  unsaved: readonly UnsavedFile[],
): Entries<ShownFile> {
  const own = new Map(unsaved.map((file) => [file.name, file]));
  const there = onRemote.filter(({ name }) => !own.has(name) && !own.has(PARTIAL.exec(name)?.[1] ?? ''));
  const waiting = [...own.values()].map(({ name, bytes, modifiedMs, state }) => ({
    name,
    bytes,
    modifiedMs,
    isCached: true,
    unsaved: state,
  }));
  return firstOf({ folders, files: [...there, ...waiting], hidden });
}
