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

/** `require` rejects for one whose disk is not there. */
export function createCacheRoots(
  stateDir: string,
  require: (root: string) => Promise<void> = () => Promise.resolve(),
): CacheRoots {
  const file = join(stateDir, 'mount', 'cache-folders.json');
  let known: Promise<Roots> | undefined;
  const saving = createSerialQueue();
  const load = (): Promise<Roots> => {
    known ??= read(file, require);
    // Whoever waits for it hears of it; the next one reads anew.
    known.catch(() => (known = undefined));
    return known;
  };
  return {
    note: async (root) => {
      const list = await load();
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
    former: async (present) => (await load()).roots.filter((root) => root !== present),
  };
}

interface Roots {
  readonly roots: string[];
  /** What the file says. */
  written: readonly string[];
}

/** Entries are dropped only at the start, when nothing is being written anywhere. */
async function read(file: string, require: (root: string) => Promise<void>): Promise<Roots> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]';
    throw error;
  });
  const written = parse(text);
  const pending = await Promise.all(written.map((root) => holdsFiles(root, require)));
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

/** A folder that cannot be read counts as holding files. */
export async function holdsFiles(
  root: string,
  require: (root: string) => Promise<void> = () => Promise.resolve(),
): Promise<boolean> {
  try {
    await require(root);
    const folders = (await cachedShares(root)).map((share) => join(root, share));
    const all = await Promise.all(folders.map((folder) => pendingOf(folder)));
    if (all.some(({ count }) => count > 0)) return true;
    // Changes in an upper folder may be waiting, too, also where it was set aside; only the uploader can tell.
    const aside = (await Promise.all(folders.map(asideFolders))).flat();
    return (await Promise.all([...folders, ...aside].map(holdsLayer))).includes(true);
  } catch {
    // Unknown counts as waiting.
    return true;
  }
}
