/**
 * `npm run package [-- --arch amd64|arm64] [--output FOLDER] [--fast]`: Debian packages. The same tree gives
 * the same bytes: every time is that of SOURCE_DATE_EPOCH, else of the last commit, and files come by name.
 */
import { execFile } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { PACKAGE_DIR, packageVersion } from '../../core/platform/package.ts';
import { bundle } from './bundle.ts';
import { contents, DOC, LIB } from './contents.ts';
import { changelog, checksums, controlFile } from './control.ts';
import { ARCHITECTURES, unpackNode } from './node-binary.ts';
import type { Architecture } from './node-binary.ts';

const run = promisify(execFile);
const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm'];
const MANUALS = [
  ['mountkeeper.1', 1],
  ['mountkeeper.toml.5', 5],
  ['mountkeeper.8', 8],
] as const;
/** Policy: what explains is compressed from this size on. */
const COMPRESS_FROM = 4_096;

interface Order {
  readonly architecture: Architecture;
  readonly output: string;
  /** Little compression: for tests. */
  readonly isFast: boolean;
  readonly epochSeconds: number;
}

async function put(root: string, path: string, content: string | Buffer, mode = 0o644): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content, { mode });
}

async function copyContents(root: string): Promise<void> {
  for (const [target, source] of await contents()) {
    const content = withoutInterpreter(target, await readFile(source));
    const isDocument = target.startsWith(`${DOC}/`) && !/\/(?:copyright|README\.Debian)$|\.png$/.test(target);
    if (isDocument && content.length > COMPRESS_FROM)
      await put(root, `${target}.gz`, gzipSync(content, { level: 9 }));
    else await put(root, target, content, content.subarray(0, 2).toString() === '#!' ? 0o755 : 0o644);
  }
}

/**
 * Nothing in the library is started by itself, and the interpreter that the line names is not the package's.
 */
function withoutInterpreter(target: string, content: Buffer): Buffer {
  const line = '#!/usr/bin/env node';
  const isNamed = target.startsWith(`${LIB}/`) && content.subarray(0, line.length).toString() === line;
  return isNamed ? content.subarray(content.indexOf('\n')) : content;
}

/** What is not copied as it is. */
async function writeOthers(root: string, { architecture, epochSeconds }: Order): Promise<void> {
  await mkdir(join(root, LIB), { recursive: true });
  const release = await unpackNode(architecture, join(root, LIB));
  await rename(join(release, 'bin'), join(root, LIB, 'bin'));
  await put(root, `${DOC}/LICENSE.node.gz`, gzipSync(await readFile(join(release, 'LICENSE')), { level: 9 }));
  await rm(release, { recursive: true });
  await put(
    root,
    `${DOC}/changelog.gz`,
    gzipSync(changelog(await packageVersion(), epochSeconds), { level: 9 }),
  );
  for (const [name, section] of MANUALS) {
    const page = await readFile(join(PACKAGE_DIR, 'config/man', name));
    await put(root, `usr/share/man/man${section}/${name}.gz`, gzipSync(page, { level: 9 }));
  }
  await put(root, 'usr/lib/systemd/system/mountkeeper.service', await serviceUnit());
  await put(
    root,
    'usr/lib/systemd/system/mountkeeper-share@.target',
    await readFile(join(PACKAGE_DIR, 'config/mountkeeper-share@.target'), 'utf8'),
  );
}

/** The unit that lies in config/, with the places of this package. */
async function serviceUnit(): Promise<string> {
  const text = await readFile(join(PACKAGE_DIR, 'config/mountkeeper.service'), 'utf8');
  const placed = text
    .replace(/^ExecStart=\/usr\/local\/bin\//m, 'ExecStart=/usr/bin/')
    .replace(/^Documentation=.*$/m, 'Documentation=man:mountkeeper(8) man:mountkeeper.toml(5)');
  if (!placed.includes('ExecStart=/usr/bin/mountkeeper run') || !placed.includes('man:mountkeeper(8)')) {
    throw new Error('config/mountkeeper.service has another form than this expects');
  }
  return placed;
}

async function filesBelow(root: string, below = ''): Promise<string[]> {
  const entries = (await readdir(join(root, below), { withFileTypes: true })).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(root, path) : [path];
    }),
  );
  return found.flat();
}

async function writeControl(root: string, { architecture }: Order): Promise<void> {
  const paths = await filesBelow(root);
  const sizes = await Promise.all(
    paths.map(async (path) => Math.ceil((await stat(join(root, path))).size / 1024)),
  );
  const installedKib = sizes.reduce((sum, size) => sum + size, 0);
  const sums = await checksums(root, paths);
  await put(
    root,
    'DEBIAN/control',
    controlFile({ version: await packageVersion(), architecture, installedKib }),
  );
  await put(root, 'DEBIAN/md5sums', sums);
  for (const name of SCRIPTS) {
    await put(root, `DEBIAN/${name}`, await readFile(join(PACKAGE_DIR, 'config/debian', name)), 0o755);
  }
}

/**
 * Times and modes of everything. What may be read is the same whatever umask the build has: with 077 users would
 * otherwise get a program that they cannot read.
 */
async function settle(folder: string, epochSeconds: number): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await settle(path, epochSeconds);
    else {
      const isProgram = ((await stat(path)).mode & 0o100) !== 0;
      await chmod(path, isProgram ? 0o755 : 0o644);
      await utimes(path, epochSeconds, epochSeconds);
    }
  }
  await chmod(folder, 0o755);
  await utimes(folder, epochSeconds, epochSeconds);
}

async function build(order: Order): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'mountkeeper-package-'));
  try {
    await copyContents(root);
    await bundle(join(root, LIB, 'dist'));
    await writeOthers(root, order);
    await writeControl(root, order);
    await settle(root, order.epochSeconds);
    await mkdir(order.output, { recursive: true });
    const file = join(order.output, `mountkeeper_${await packageVersion()}_${order.architecture}.deb`);
    // One thread: several cut the stream into other pieces.
    const compression = order.isFast ? ['-Zgzip', '-z1'] : ['-Zxz', '-z6', '--threads-max=1'];
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(order.epochSeconds) };
    await run('dpkg-deb', ['--build', '--root-owner-group', ...compression, root, `${file}.new`], { env });
    await rename(`${file}.new`, file);
    return file;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** Without git and without the variable: when the version was written down. */
async function sourceEpoch(): Promise<number> {
  const given = Number(process.env['SOURCE_DATE_EPOCH']);
  if (Number.isSafeInteger(given) && given > 0) return given;
  const commit = await run('git', ['log', '-1', '--format=%ct'], { cwd: PACKAGE_DIR }).catch(() => ({
    stdout: '',
  }));
  return Number(commit.stdout) || Math.floor((await stat(join(PACKAGE_DIR, 'package.json'))).mtimeMs / 1000);
}

const { values } = parseArgs({
  options: { arch: { type: 'string' }, output: { type: 'string' }, fast: { type: 'boolean' } },
});
const unknown = values.arch !== undefined && !ARCHITECTURES.some((one) => one === values.arch);
if (unknown) {
  console.error(`package: --arch is ${ARCHITECTURES.join(' or ')}`);
  process.exit(64);
}
const epochSeconds = await sourceEpoch();
const output = resolve(values.output ?? join(PACKAGE_DIR, '.cache/packages'));
for (const architecture of ARCHITECTURES.filter((one) => values.arch === undefined || one === values.arch)) {
  console.log(await build({ architecture, output, isFast: values.fast === true, epochSeconds }));
}
