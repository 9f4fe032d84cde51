/**
 * Lists one folder of a share as the remote shows it now, and says of each file whether it lies in the cache.
 * A process of its own: it waits for the remote and reads many small files. Takes one request on its standard
 * input and answers on its standard output.
 */
import { text } from 'node:stream/consumers';
import type { CacheAccess, CacheView } from 'mountkeeper';

/** What nobody reads to its end. */
export const MOST_ENTRIES = 1_000;

export interface ListRequest {
  readonly access: CacheAccess;
  /** Relative to the share; empty for its root. */
  readonly folder: string;
}

export interface ListAnswer {
  readonly folders: readonly string[];
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly modifiedMs: number;
    readonly isCached: boolean;
  }[];
  /** Entries that are not told. */
  readonly hidden: number;
}

async function answer(): Promise<ListAnswer> {
  const { access, folder } = JSON.parse(await text(process.stdin)) as ListRequest;
  const { openCacheView } = (await import(access.module)) as {
    openCacheView: (parameters: CacheAccess['parameters']) => CacheView;
  };
  const { folders, files } = await openCacheView(access.parameters).list(folder);
  const byName = new Intl.Collator(undefined, { numeric: true }).compare;
  const sortedFolders = [...folders].sort(byName);
  const sortedFiles = [...files].sort((a, b) => byName(a.name, b.name));
  const shownFolders = sortedFolders.slice(0, MOST_ENTRIES);
  const shownFiles = sortedFiles.slice(0, MOST_ENTRIES - shownFolders.length);
  const hidden = folders.length + files.length - shownFolders.length - shownFiles.length;
  return { folders: shownFolders, files: shownFiles, hidden };
}

try {
  process.stdout.write(JSON.stringify(await answer()));
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
