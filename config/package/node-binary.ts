/**
 * The Node.js that goes into the package: a release as its authors built it, by npm's packages of it, pinned
 * by version and hash. Not the one that builds: every build of one commit is the same, for either
 * architecture, wherever it is made.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_DIR } from '../../core/platform/package.ts';

export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

interface Pins {
  readonly version: string;
  readonly packages: Readonly<Record<Architecture, { readonly name: string; readonly integrity: string }>>;
}

const PINS = join(PACKAGE_DIR, 'config/package/node-binaries.json');
const CACHE = join(PACKAGE_DIR, '.cache/node');
const run = promisify(execFile);

/**
 * Unpacks the release into a new folder below `room`, with `bin/node` and `LICENSE`, and gives the folder's
 * path. The archive is fetched once; its hash is looked at each time. Rejects on any other.
 */
export async function unpackNode(architecture: Architecture, room: string): Promise<string> {
  const archive = await fetchNode(architecture);
  const folder = await mkdtemp(join(room, 'node-'));
  const parts = ['package/bin/node', 'package/LICENSE'];
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1', ...parts]);
  return folder;
}

/** The archive, out of the project's cache where it has been fetched before. */
export async function fetchNode(architecture: Architecture): Promise<string> {
  const { version, packages } = JSON.parse(await readFile(PINS, 'utf8')) as Pins;
  const { name, integrity } = packages[architecture];
  const archive = join(CACHE, `${name}-${version}.tgz`);
  if ((await integrityOf(archive)) === undefined) await fetch(`${name}@${version}`, archive);
  const found = await integrityOf(archive);
  if (found !== integrity) {
    await rm(archive, { force: true });
    throw new Error(
      `${name} ${version} is not the one that config/package/node-binaries.json names: ${found ?? 'not there'}`,
    );
  }
  return archive;
}

/** Several builds may do so at once: each brings its own, whole. */
async function fetch(what: string, archive: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'new-'));
  try {
    await run('npm', ['pack', '--silent', '--pack-destination', folder, what], {
      cwd: PACKAGE_DIR,
      timeout: 300_000,
    });
    await rename(join(folder, basename(archive)), archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function integrityOf(file: string): Promise<string | undefined> {
  const content = await readFile(file).catch(() => undefined);
  return content && `sha512-${createHash('sha512').update(content).digest('base64')}`;
}
