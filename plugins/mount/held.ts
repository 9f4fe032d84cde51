import { mkdir, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { filesBelow } from './cache-meta.ts';
import type { CacheTrees } from './cache-meta.ts';

/** Beside the cache's own trees: `held/<number>` is shaped like them, and the higher number is the newer. */
export const HELD = 'held';

/** One version of a file that rclone gave up. */
export interface Held {
  readonly path: string;
  readonly data: string;
  readonly meta: string;
}

/** Takes the content and its record over, by their names; they go back into the cache at the next start of rclone. */
export async function hold(cacheDir: string, path: string, from: { readonly content: string; readonly meta: string }): Promise<void> {
  const number = String(Number((await numbers(cacheDir)).at(-1) ?? 0) + 1).padStart(6, '0');
  const held = locate(treesIn(cacheDir, number), path);
  for (const file of [held.meta, held.data]) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // The record first: content without one says nothing about which of its zeros are holes.
  await rename(from.meta, held.meta);
  await rename(from.content, held.data);
}

/** Oldest first. */
export async function* heldFiles(cacheDir: string): AsyncGenerator<Held> {
  for (const number of await numbers(cacheDir)) {
    const trees = treesIn(cacheDir, number);
    for await (const path of filesBelow(trees.data)) yield locate(trees, path);
  }
}

function locate(trees: CacheTrees, path: string): Held {
  return { path, data: join(trees.data, path), meta: join(trees.meta, path) };
}

function treesIn(cacheDir: string, number: string): CacheTrees {
  return { data: join(cacheDir, HELD, number, 'data'), meta: join(cacheDir, HELD, number, 'meta') };
}

async function numbers(cacheDir: string): Promise<readonly string[]> {
  return (await readdir(join(cacheDir, HELD)).catch((): string[] => [])).sort();
}
