/**
 * Lists one folder of a share as the remote has it now, and which files are cached. A separate process,
 * because it waits for the remote and reads many small files. Takes one request on standard input and
 * answers on standard output.
 */
import { text } from 'node:stream/consumers';
import type { CacheAccess, CacheView, CacheViewFile, UnsavedFile } from 'mountkeeper';

/** Most entries in an answer; nobody reads more. */
export const MOST_ENTRIES = 1_000;

export interface ListRequest {
  readonly access: CacheAccess;
  /** Relative to the share; empty for its root. */
  readonly folder: string;
  /** Files in the folder that wait, where the view itself cannot tell. */
  readonly queued: readonly UnsavedFile[];
}

export interface ListAnswer {
  readonly folders: readonly string[];
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly modifiedMs: number;
    readonly isCached: boolean;
    /** How much of it lies in the cache, where it is a part. */
    readonly cachedBytes?: number;
    /** Set while the remote does not have this content. */
    readonly unsaved?: UnsavedFile['state'];
  }[];
  /** Number of entries that were left out. */
  readonly hidden: number;
}

async function answer(): Promise<ListAnswer> {
  const { access, folder, queued } = JSON.parse(await text(process.stdin)) as ListRequest;
  const { openCacheView } = (await import(access.module)) as {
    openCacheView: (parameters: CacheAccess['parameters']) => CacheView;
  };
  const view = openCacheView(access.parameters);
  const [{ folders, files: listed }, unsaved] = await Promise.all([
    view.list(folder),
    // Without it the badges say less, and nothing that is wrong about the remote.
    Promise.resolve(view.unsaved ? view.unsaved(folder) : queued).catch(() => undefined),
  ]);
  const files = withUnsaved(listed, unsaved ?? []);
  const byName = new Intl.Collator(undefined, { numeric: true }).compare;
  const sortedFolders = [...folders].sort(byName);
  const sortedFiles = [...files].sort((a, b) => byName(a.name, b.name));
  const shownFolders = sortedFolders.slice(0, MOST_ENTRIES);
  const shownFiles = sortedFiles.slice(0, MOST_ENTRIES - shownFolders.length);
  const hidden = folders.length + files.length - shownFolders.length - shownFiles.length;
  return { folders: shownFolders, files: shownFiles, hidden };
}

/** What rclone names a file while it is being uploaded. */
const PARTIAL = /^(.+)\.[0-9a-f]{8}\.partial$/;

/** What users see: their own version goes before the remote's, and new files are not there yet. */
function withUnsaved(
  onRemote: readonly CacheViewFile[],
  unsaved: readonly UnsavedFile[],
): ListAnswer['files'] {
  const going = new Set(unsaved.map(({ name }) => name));
  const listed = onRemote.filter(({ name }) => !going.has(PARTIAL.exec(name)?.[1] ?? ''));
  const own = new Map(
    unsaved.map(({ name, bytes, modifiedMs, state }) => [name, { bytes, modifiedMs, state }]),
  );
  const merged = listed.map((file) => {
    const { state, ...figures } = own.get(file.name) ?? {};
    own.delete(file.name);
    return state === undefined ? file : { ...file, ...figures, isCached: true, unsaved: state };
  });
  const fresh = [...own].map(([name, { state, ...figures }]) => ({
    name,
    ...figures,
    isCached: true,
    unsaved: state,
  }));
  return [...merged, ...fresh];
}

try {
  process.stdout.write(JSON.stringify(await answer()));
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
