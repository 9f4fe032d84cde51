/** A folder with all that is in it, as one line a thing: to be held against another. */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Path → `folder`, or the file's size and the start of its checksum. */
export function treeOf(root: string): Record<string, string> {
  const tree: Record<string, string> = {};
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        tree[path] = 'folder';
        walk(path);
      } else {
        const content = readFileSync(join(root, path));
        tree[path] = `${content.length} ${createHash('sha256').update(content).digest('hex').slice(0, 12)}`;
      }
    }
  };
  walk('');
  return tree;
}

/** One line for each path that differs. */
export function differences(
  found: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): string[] {
  const paths = [...new Set([...Object.keys(found), ...Object.keys(wanted)])].sort();
  return paths
    .filter((path) => found[path] !== wanted[path])
    .map((path) => `${path}: is ${found[path] ?? 'not there'}, should be ${wanted[path] ?? 'not there'}`);
}
