import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import { cachedShares, pendingOf } from './scan.ts';
import { holdsLayer } from '../layer/layering.ts';

/**
 * Folders that caches of this daemon have been in. What waits in one that `cache.dir` names no more must not
 * be forgotten.
 */
export interface CacheRoots {
  /** To be called before anything is cached there. */
  note(root: string): Promise<void>;
  /** All but the present one, as far as something may wait in them. */
  former(present: string): Promise<readonly string[]>;
}

export function createCacheRoots(stateDir: string): CacheRoots {
  const file = join(stateDir, 'mount', 'cache-folders.json');
  let known: Promise<string[]> | undefined;
  let saving: Promise<unknown> = Promise.resolve();
  const load = (): Promise<string[]> => {
    known ??= read(file);
    known.catch(() => (known = undefined));
    return known;
  };
  return {
    note: async (root) => {
      const roots = await load();
      if (!roots.includes(root)) roots.push(root);
      else return void (await saving);
      saving = saving.catch(() => undefined).then(() => writeWhole(file, `${JSON.stringify(roots)}\n`));
      await saving.catch((error: unknown) => {
        roots.splice(roots.indexOf(root), 1);
        throw error;
      });
    },
    former: async (present) => (await load()).filter((root) => root !== present),
  };
}

/** Forgotten at the start alone, when nothing is written anywhere. */
async function read(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]';
    throw error;
  });
  const roots = parse(text);
  const pending = await Promise.all(roots.map(holdsFiles));
  return roots.filter((_, index) => pending[index]);
}

function parse(text: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((root) => typeof root === 'string') : [];
  } catch {
    return [];
  }
}

/** One that cannot be read may hold some. */
async function holdsFiles(root: string): Promise<boolean> {
  try {
    const all = await Promise.all((await cachedShares(root)).map((share) => pendingOf(join(root, share))));
    if (all.some(({ count }) => count > 0)) return true;
    // What is in an upper folder may wait, too; only the uploader can tell.
    return (
      await Promise.all((await cachedShares(root)).map((share) => holdsLayer(join(root, share))))
    ).includes(true);
  } catch {
    return true;
  }
}
