/** Helpers for paths relative to a share, with `/` between names; `''` is the share's root. */

export function parentOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function below(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** True for entries of the folder, at any depth. */
export function isInside(path: string, folder: string): boolean {
  return folder === '' ? path !== '' : path.startsWith(`${folder}/`);
}

export function isAtOrInside(path: string, folder: string): boolean {
  return path === folder || isInside(path, folder);
}

/** The new path of an entry at or in `from`, after `from` was renamed to `to`. */
export function carried(path: string, from: string, to: string): string {
  return path === from ? to : below(to, path.slice(from === '' ? 0 : from.length + 1));
}

/** All parents of a path, the nearest first, without the share's root. */
export function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let folder = parentOf(path); folder !== ''; folder = parentOf(folder)) found.push(folder);
  return found;
}

/** Number of names in a path. */
export function depth(path: string): number {
  return path.split('/').length;
}

/**
 * The same for names that a NAS may take for one: SMB servers, macOS and Windows tell neither upper from lower
 * case nor the two forms of an accented letter in Unicode.
 */
export function folded(path: string): string {
  return path.normalize('NFC').toLowerCase();
}

/** Answers what lies above or below a path without asking all that is in it. */
export class PathIndex<T> {
  readonly #at = new Map<string, T[]>();
  readonly #inside = new Map<string, T[]>();

  constructor(all: Iterable<readonly [path: string, value: T]>) {
    for (const [path, value] of all) {
      addTo(this.#at, path, value);
      for (const folder of ancestors(path)) addTo(this.#inside, folder, value);
    }
  }

  /** Of this path and of the folders that it is in. */
  atOrAbove(path: string): readonly T[] {
    if (this.#at.size === 0) return [];
    return [path, ...ancestors(path)].flatMap((one) => this.#at.get(one) ?? []);
  }

  /** Of what is in this folder, at any depth. */
  inside(folder: string): readonly T[] {
    return this.#inside.get(folder) ?? [];
  }

  /** Of all that is on the way to the path, and in it. */
  near(path: string): readonly T[] {
    return [...this.atOrAbove(path), ...this.inside(path)];
  }

  /** Of this path, and of what is in it. */
  atOrInside(path: string): readonly T[] {
    return [...(this.#at.get(path) ?? []), ...this.inside(path)];
  }
}

function addTo<T>(map: Map<string, T[]>, path: string, value: T): void {
  const values = map.get(path);
  if (values === undefined) map.set(path, [value]);
  else values.push(value);
}
