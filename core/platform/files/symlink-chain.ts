/** The files that decide what a path contains: the symlinks on the way, and the file at the end. */
import { readlink } from 'node:fs/promises';
import { dirname, join, parse, resolve, sep } from 'node:path';

const MAX_LINKS = 40;

/**
 * Absolute paths, links first, the file itself last. Links of folders on the way count too, as they are
 * swapped to swap files.
 */
export async function symlinkChain(path: string): Promise<readonly string[]> {
  const links: string[] = [];
  let target = resolve(path);
  while (links.length < MAX_LINKS) {
    const found = await firstLink(target);
    if (found === undefined) break;
    links.push(found.link);
    target = found.target;
  }
  return [...links, target];
}

/** The first component that is a link, and the whole path with that link followed. */
async function firstLink(path: string): Promise<{ link: string; target: string } | undefined> {
  const { root } = parse(path);
  const names = path
    .slice(root.length)
    .split(sep)
    .filter((name) => name !== '');
  let prefix = root;
  for (const [index, name] of names.entries()) {
    prefix = join(prefix, name);
    // Not a link, or not there: the name stands for itself.
    const content = await readlink(prefix).catch(() => undefined);
    if (content === undefined) continue;
    return { link: prefix, target: join(resolve(dirname(prefix), content), ...names.slice(index + 1)) };
  }
  return undefined;
}
