/** Building what people install, for tests: the Debian package and npm's archive. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PROJECT } from '../../runner/test-files.ts';

const BUILD = fileURLToPath(new URL('../../../config/package/build.js', import.meta.url));

/** Runs a program; rejects with its output when it ends with another code than 0. */
export const run = promisify(execFile);
/** Debian's name for this machine. */
export const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** The Debian package for this machine; `--fast` compresses little. */
export async function buildDeb(output: string, ...options: readonly string[]): Promise<string> {
  return buildWithUmask('022', output, options);
}

const ONCE =
  'kept=$0; mkdir -p "$kept" && exec 9> "$kept/lock" && flock 9 || exit 1; ls "$kept"/*.deb 2> /dev/null && exit; ' +
  'file=$("$@" --output "$kept/new") && mv "$file" "$kept" && rmdir "$kept/new" && ls "$kept"/*.deb';

/** The Debian package, compressed little: built by the first who asks in a run of all tests, and by everybody else. */
export async function builtDeb(output: string): Promise<string> {
  const bundled = process.env['MOUNTKEEPER_TEST_PACKAGE'];
  if (bundled === undefined) return buildDeb(output, '--fast');
  const build = [process.execPath, BUILD, '--arch', ARCHITECTURE, '--fast'];
  const args = ['-c', ONCE, join(bundled, '.cache/deb'), 'sh', '-c', 'umask 022; exec "$@"', 'sh', ...build];
  const { stdout } = await run('sh', args, { timeout: 540_000 });
  return stdout.trim();
}

/** The same by somebody whose new files nobody else may read. */
export async function buildDebPrivately(output: string, ...options: readonly string[]): Promise<string> {
  return buildWithUmask('077', output, options);
}

async function buildWithUmask(umask: string, output: string, options: readonly string[]): Promise<string> {
  const build = [process.execPath, BUILD, '--arch', ARCHITECTURE, '--output', output, ...options];
  const args = ['-c', 'umask "$0"; exec "$@"', umask, ...build];
  const { stdout } = await run('sh', args, { timeout: 540_000 });
  return stdout.trim();
}

/** What `npm publish` would publish. */
export async function packForNpm(output: string): Promise<string> {
  await mkdir(output, { recursive: true });
  await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', output], {
    cwd: PROJECT,
    timeout: 120_000,
  });
  const [archive = ''] = await readdir(output);
  return join(output, archive);
}

/** The same package as another version, in `folder`; `change` may alter the files, which lie below the path it gets. */
export async function asVersion(
  deb: string,
  version: string,
  folder: string,
  change?: (tree: string) => Promise<void>,
): Promise<string> {
  const tree = join(folder, 'tree');
  await mkdir(folder, { recursive: true });
  await run('dpkg-deb', ['--raw-extract', deb, tree]);
  const control = join(tree, 'DEBIAN/control');
  const text = (await readFile(control, 'utf8')).replace(/^Version: .*$/m, `Version: ${version}`);
  await writeFile(control, text);
  const manifest = join(tree, 'usr/lib/mountkeeper/package.json');
  await writeFile(
    manifest,
    (await readFile(manifest, 'utf8')).replace(/"version": "[^"]*"/, `"version": "${version}"`),
  );
  await change?.(tree);
  const file = join(folder, `mountkeeper_${version}.deb`);
  await run('dpkg-deb', ['--build', '--root-owner-group', '-Znone', tree, file]);
  await rm(tree, { recursive: true });
  return file;
}
