/** The package itself: its folder and its version. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `dist/core/platform/package.js` is three folders below it. */
export const PACKAGE_DIR = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
export const IN_TREE_PLUGINS = join(PACKAGE_DIR, 'dist', 'plugins');

/** The version in package.json. */
export async function packageVersion(): Promise<string> {
  return (JSON.parse(await readFile(join(PACKAGE_DIR, 'package.json'), 'utf8')) as { version: string })
    .version;
}
