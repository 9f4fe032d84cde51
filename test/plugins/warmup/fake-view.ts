import type { CacheView } from 'mountkeeper';

const MIB = 2 ** 20;

/**
 * A remote in memory: folder → files (bytes) and folders. Names that begin with `cached` are in the cache.
 */
export class FakeView implements CacheView {
  aheadBytes = 64 * MIB;
  room = Infinity;
  isThere = true;
  moving: { readonly path: string; readonly bytes: number; readonly isUpload?: boolean }[] = [];
  readonly unreadable = new Set<string>();
  readonly held = new Set<string>();
  readonly #tree: Readonly<Record<string, Readonly<Record<string, number | 'folder'>>>>;
  /** Files that a reader made whole; all unless told. */
  keeps = (path: string): boolean => path !== '';

  constructor(tree: Readonly<Record<string, Readonly<Record<string, number | 'folder'>>>> = {}) {
    this.#tree = tree;
  }

  async list(folder: string): ReturnType<CacheView['list']> {
    const entries = this.#tree[folder];
    if (entries === undefined || this.unreadable.has(folder)) throw new Error(`no ${folder}`);
    const names = Object.keys(entries);
    return {
      folders: names.filter((name) => entries[name] === 'folder'),
      files: names
        .filter((name) => entries[name] !== 'folder')
        .map((name) => ({
          name,
          bytes: entries[name] as number,
          modifiedMs: name.startsWith('old') ? 1_000 : 9_000,
          isCached: name.startsWith('cached'),
        })),
    };
  }

  isWhole(path: string): boolean {
    return this.keeps(path);
  }

  holds(path: string): boolean {
    return this.held.has(path);
  }

  async roomBytes(): Promise<number> {
    return this.room;
  }

  async transfers(): ReturnType<CacheView['transfers']> {
    return this.moving;
  }

  async answers(): Promise<boolean> {
    return this.isThere;
  }
}
