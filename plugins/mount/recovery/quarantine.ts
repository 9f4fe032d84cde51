import { mkdir, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import { filesBelow } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';

/**
 * Folder next to the cache's own trees: each `held/<number>` has the same layout, and a higher number is
 * newer.
 */
export const QUARANTINE = 'held';

/** One version of a file whose write-back failed. */
export interface QuarantinedVersion {
  readonly path: string;
  readonly data: string;
  readonly meta: string;
}

/**
 * Quarantines a version: moves its content and metadata, which go back into the cache at the next start of
 * rclone.
 */
export async function quarantine(
  cacheDir: string,
  path: string,
  from: { readonly content: string; readonly meta: string },
): Promise<void> {
  const number = String(Number((await numbers(cacheDir)).at(-1) ?? 0) + 1).padStart(6, '0');
  const quarantined = locate(treesIn(cacheDir, number), path);
  for (const file of [quarantined.meta, quarantined.data])
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // Metadata first: content without it cannot say which of its zeros are holes.
  await rename(from.meta, quarantined.meta);
  await rename(from.content, quarantined.data);
}

/** Oldest first. */
export async function* quarantinedFiles(cacheDir: string): AsyncGenerator<QuarantinedVersion> {
  for (const number of await numbers(cacheDir)) {
    const trees = treesIn(cacheDir, number);
    for await (const path of filesBelow(trees.data)) yield locate(trees, path);
  }
}

function locate(trees: CacheTrees, path: string): QuarantinedVersion {
  return { path, data: join(trees.data, path), meta: join(trees.meta, path) };
}

function treesIn(cacheDir: string, number: string): CacheTrees {
  return {
    data: join(cacheDir, QUARANTINE, number, 'data'),
    meta: join(cacheDir, QUARANTINE, number, 'meta'),
  };
}

/** Rejects when the folder cannot be read: the next version would take the place of one that is there. */
async function numbers(cacheDir: string): Promise<readonly string[]> {
  return ((await readdir(join(cacheDir, QUARANTINE)).catch(undefinedWhenMissing)) ?? []).sort();
}
