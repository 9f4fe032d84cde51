/** All files of a folder of the remote, however deep. */
import type { RemoteEntry } from 'mountkeeper';
import { below } from '../compare/paths.ts';
import { ask } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';

/** What a receipt has no proof of; `path` is relative to the share. */
export interface UnprovedFile {
  readonly path: string;
  readonly reason: string;
}

export interface Listing {
  /** Places of all files of the remote. */
  readonly files: ReadonlySet<string>;
  /** Folders in which there may be more. */
  readonly unlisted: readonly UnprovedFile[];
}

/**
 * Undefined when the remote has nothing there. Rejects when it is silent, or when the path itself cannot be
 * listed; another folder that cannot is named.
 */
export async function filesAt(path: string, tools: StepTools): Promise<Listing | undefined> {
  const thing = path === '' ? { kind: 'folder' } : await ask(tools, path);
  if (thing.kind === 'nothing') return undefined;
  if (thing.kind === 'file') return { files: new Set([path]), unlisted: [] };
  const files = new Set<string>();
  const unlisted: UnprovedFile[] = [];
  const folders = [path];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const isRoot = folder === path;
    const entries = await entriesOf(folder, tools, isRoot);
    if (entries === undefined && isRoot) return undefined;
    if (Array.isArray(entries)) sortInto({ files, folders }, folder, entries);
    else unlisted.push({ path: folder, reason: entries ?? WENT_AWAY });
  }
  return { files, unlisted };
}

function sortInto(
  { files, folders }: { readonly files: Set<string>; readonly folders: string[] },
  folder: string,
  entries: readonly RemoteEntry[],
): void {
  for (const { name, kind } of entries) {
    if (kind === 'folder') folders.push(below(folder, name));
    else files.add(below(folder, name));
  }
}

const WENT_AWAY = 'It went away while it was listed.';

/** The reason where one folder among others cannot be listed; undefined where there is none. */
async function entriesOf(
  folder: string,
  { remote, signal }: StepTools,
  isRoot: boolean,
): Promise<RemoteEntry[] | string | undefined> {
  try {
    const entries = await remote.list(folder, { signal });
    return entries && [...entries];
  } catch (error) {
    signal.throwIfAborted();
    if (isRoot || (error as { readonly remote?: string }).remote === 'silent') throw error;
    return `It could not be listed: ${(error as Error).message}`;
  }
}
