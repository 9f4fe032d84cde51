import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue, writeWhole } from 'mountkeeper';
import { asideFolders } from './identity.ts';
import { cachedShares, pendingOf } from './scan.ts';
import { holdsLayer } from '../layer/layering.ts';

/**
 * All cache folders that this daemon has used. Files that wait in one that `cache.dir` no longer names must
 * not be forgotten.
 */
export interface CacheRoots {
  /** Call it before anything is cached there. */
  note(root: string): Promise<void>;
  /** All others that may still contain waiting files. */
  former(present: string): Promise<readonly string[]>;
}

/** `mayHold`: whether something waits in a folder, or may. Never rejects. */
export function createCacheRoots(stateDir: string, mayHold: (root: string) => Promise<boolean>): CacheRoots {
  const file = join(stateDir, 'mount', 'cache-folders.json');
  let known: Promise<Roots> | undefined;
  const saving = createSerialQueue();
  /** `present`: in use from now on, so that nobody has to look into it. */
  const load = (present: string): Promise<Roots> => {
    known ??= read(file, async (root) => root === present || mayHold(root));
    // Whoever waits for it hears of it; the next one reads anew.
    known.catch(() => (known = undefined));
    return known;
  };
  return {
    note: async (root) => {
      const list = await load(root);
      await saving.run(async () => {
        const { roots } = list;
        if (roots.includes(root)) return;
        // One that was dropped still stands in the file: no start needs to write it out anew.
        if (!list.written.includes(root)) {
          const written = [...roots, root];
          await writeWhole(file, `${JSON.stringify(written)}\n`);
          list.written = written;
        }
        roots.push(root);
      });
    },
    former: async (present) => (await load(present)).roots.filter((root) => root !== present),
  };
}

interface Roots {
  readonly roots: string[];
  /** What the file says. */
  written: readonly string[];
}

/** Entries are dropped only at the start, when nothing is being written anywhere. */
async function read(file: string, mayHold: (root: string) => Promise<boolean>): Promise<Roots> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]';
    throw error;
  });
  const written = parse(text);
  const pending = await Promise.all(written.map(mayHold));
  return { roots: written.filter((_, index) => pending[index]), written };
}

function parse(text: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((root) => typeof root === 'string') : [];
  } catch {
    // It is written whole or not at all, so somebody has spoilt it by hand.
    return [];
  }
}

/**
 * A folder that cannot be read counts as holding files. `waits`: whether the uploader knows of something in a cache
 * folder, such as a deletion of which nothing is left in the upper folder.
 */
export async function holdsFiles(
  root: string,
  waits: (cacheDir: string) => Promise<boolean>,
): Promise<boolean> {
  try {
    const folders = (await cachedShares(root)).map((share) => join(root, share));
    const all = await Promise.all(folders.map((folder) => pendingOf(folder)));
    if (all.some(({ count }) => count > 0)) return true;
    // Changes in an upper folder may be waiting, too, also where it was set aside.
    const aside = (await Promise.all(folders.map(asideFolders))).flat();
    const holds = async (folder: string): Promise<boolean> =>
      (await holdsLayer(folder)) || (await waits(folder));
    return (await Promise.all([...folders, ...aside].map(holds))).includes(true);
  } catch {
    // Unknown counts as waiting.
    return true;
  }
}
