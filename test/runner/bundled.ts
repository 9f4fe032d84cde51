/**
 * The daemon for the tests of a run, bundled as in the Debian package: each start and each subcommand reads a hundred
 * files instead of a thousand, and what is tested is what users run.
 */
import { cp, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { bundle } from '../../config/package/bundle.ts';
import { PROJECT } from './test-files.ts';

/** Where `layOut` puts it; what was there goes. */
const TARGET = join(PROJECT, '.cache/bundled');
/** Of `dist/`; the tests themselves are not for it. */
const BUILT = ['core', 'plugins', 'config'];
/** What the package finds beside `dist/`. Others are only named, by links. */
const COPIED = ['package.json', 'plugins', 'config', 'docs', 'README.md', 'CHANGELOG.md', 'LICENSE'];
const LINKED = ['node_modules', '.cache/rclone'];

/** Lays out a package folder with a bundled `dist/` and returns its path. */
export async function layOutBundle(): Promise<string> {
  await rm(TARGET, { recursive: true, force: true });
  await mkdir(join(TARGET, '.cache'), { recursive: true });
  for (const name of BUILT)
    await cp(join(PROJECT, 'dist', name), join(TARGET, 'dist', name), { recursive: true });
  for (const name of COPIED) await cp(join(PROJECT, name), join(TARGET, name), { recursive: true });
  for (const name of LINKED) await symlink(join(PROJECT, name), join(TARGET, name));
  await bundle(join(TARGET, 'dist'));
  return TARGET;
}
