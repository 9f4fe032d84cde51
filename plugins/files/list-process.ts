/**
 * Lists one folder of a share as the remote has it now, and which files are cached. A separate process,
 * because it waits for the remote and reads many small files. Takes one request on standard input and
 * answers on standard output.
 */
import { text } from 'node:stream/consumers';
import type { CacheAccess, CacheView, CacheViewFile, UnsavedFile } from 'mountkeeper';
import { firstOf } from './merge.ts';

export interface ListRequest {
  readonly access: CacheAccess;
  /** Relative to the share; empty for its root. */
  readonly folder: string;
}

/** A folder of the remote, its first entries. */
export interface Listed {
  readonly folders: readonly string[];
  readonly files: readonly CacheViewFile[];
  /** Number of entries that were left out. */
  readonly hidden: number;
  /** Files whose content the remote does not have; absent where the view cannot tell, or could not. */
  readonly unsaved?: readonly UnsavedFile[] | undefined;
}

async function answer(): Promise<Listed> {
  const { access, folder } = JSON.parse(await text(process.stdin)) as ListRequest;
  const { openCacheView } = (await import(access.module)) as {
    openCacheView: (parameters: CacheAccess['parameters']) => CacheView;
  };
  const view = openCacheView(access.parameters);
  const [listed, unsaved] = await Promise.all([
    view.list(folder),
    // Without it the badges say less, and nothing that is wrong about the remote.
    view.unsaved?.(folder).catch(() => undefined),
  ]);
  return { ...firstOf({ ...listed, hidden: 0 }), unsaved };
}

try {
  process.stdout.write(JSON.stringify(await answer()));
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
