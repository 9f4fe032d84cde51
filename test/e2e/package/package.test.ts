// @load loud
/**
 * What people install: the Debian package, unpacked, and npm's archive in an empty prefix, each with a daemon
 * of its own.
 */
import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { join } from 'node:path';
import { Daemon } from '../../support/daemon/daemon.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import {
  ARCHITECTURE,
  builtDeb,
  buildDebPrivately,
  packForNpm,
  run,
} from '../../support/package/build-packages.ts';
import { assertAuthorCanWork } from '../../support/package/plugin-author.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const version = async (): Promise<string> =>
  (JSON.parse(await readFile(`${PROJECT}package.json`, 'utf8')) as { version: string }).version;

/** Prints which of what the daemon and third parties import is one and the same. */
const INSTANCES = `
  import { Joi, SecureServer } from 'mountkeeper';
  import * as sdk from 'mountkeeper/sdk';
  import 'mountkeeper/testing';
  const { default: probing } = await import('./dist/plugins/probing/index.js');
  const isOneJoi = probing.config.schema.constructor === Joi.any().constructor;
  console.log(JSON.stringify({ isOneJoi, isOneServer: sdk.SecureServer === SecureServer }));`;

/** Paths below `root` of the modules that a program reads until its end. */
async function modulesRead(
  root: string,
  reports: string,
  [program, ...args]: readonly [string, ...string[]],
): Promise<{ readonly stdout: string; readonly modules: readonly string[] }> {
  const env = { PATH: '/usr/bin:/bin', NODE_V8_COVERAGE: reports };
  const { stdout } = await run(program, args, { env, cwd: root });
  const modules = new Set<string>();
  for (const file of await readdir(reports)) {
    const report = JSON.parse(await readFile(join(reports, file), 'utf8')) as {
      readonly result: readonly { readonly url: string }[];
    };
    const start = `file://${root}/`;
    for (const { url } of report.result) if (url.startsWith(start)) modules.add(url.slice(start.length));
  }
  return { stdout, modules: [...modules] };
}

/** Modules of ours that are neither a part of the bundle nor one of those which helpers' processes read, too. */
function outsideBundle(modules: readonly string[]): readonly string[] {
  const bundled = /^dist\/(?:core|plugins\/[^/]+)\/chunks\/|^dist\/plugins\/[^/]+\/index\.js$/;
  const entries = /^dist\/core\/(?:main|sdk\/entrance|testing\/index)\.js$/;
  const files =
    /^dist\/core\/(?:sdk\/(?:standalone|access|token-bucket|http\/[\w-]+)|platform\/[\w/-]+)\.js$/;
  const inServers = /^dist\/core\/sdk\/servers\/refused-sign-ins\.js$/;
  return modules.filter(
    (path) => path.endsWith('js') && ![bundled, entries, files, inServers].some((one) => one.test(path)),
  );
}

/**
 * A daemon of the installed program with one share: a file is read through it, and the dashboard has all that
 * it loads.
 */
async function assertWorks(scratch: Scratch, name: string, program: string): Promise<void> {
  const nas = await Nas.create(scratch, { name: `nas-${name}`, files: { 'files/a.bin': 100_000 } });
  const daemon = await Daemon.create(scratch, {
    name,
    program: [program],
    connections: [nas.connection('nas')],
    shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
  });
  await daemon.start(60_000);
  await daemon.healthy();
  const read = await new Files(scratch).checksum(`${daemon.mountPoint('files')}/a.bin`);
  assert.equal(read, (await nas.checksums()).get('files/a.bin'));
  const page = (await daemon.get('/')).text;
  const loaded = [...page.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css|svg)[^"]*)"/g)].map(
    ([, path = '']) => path,
  );
  assert.ok(loaded.length >= 4, page.slice(0, 500));
  for (const path of loaded) assert.equal((await daemon.get(path)).status, 200, path);
  assert.equal((await daemon.get('/metrics')).status, 200);
  assert.equal((await daemon.stop()).code, 0);
}

describe('the Debian package', () => {
  let scratch: Scratch;
  let packages: readonly string[];
  let root: string;

  before(async () => {
    scratch = await createScratch('package');
    packages = await Promise.all([
      builtDeb(scratch.path('one')),
      buildDebPrivately(scratch.path('two'), '--fast'),
    ]);
    root = scratch.path('root');
    await run('dpkg-deb', ['--raw-extract', packages[0] ?? '', root]);
  });
  after(() => scratch.close());

  it('is the same byte for byte when it is built again, with another umask, too', async () => {
    const [one, two] = await Promise.all(packages.map((file) => readFile(file)));
    assert.ok(one !== undefined && two !== undefined && one.length > 1_000_000);
    assert.equal(Buffer.compare(one, two), 0);
  });

  it('names this architecture, what it needs, and a checksum for each file', async () => {
    const control = await readFile(`${root}/DEBIAN/control`, 'utf8');
    assert.match(control, new RegExp(`^Version: ${await version()}\nArchitecture: ${ARCHITECTURE}\n`, 'm'));
    assert.match(control, /^Depends: .*\bfuse3\b/m);
    assert.match(control, /^Depends: .*\bbindfs\b/m, 'without it no share can be written to');
    assert.match(control, /^Recommends: .*\brclone\b/m);
    assert.match(control, /^Recommends: .*\blibnss-wrapper\b/m, 'without it the SMB server does not start');
    assert.equal((await run('md5sum', ['--check', '--quiet', 'DEBIAN/md5sums'], { cwd: root })).stdout, '');
  });

  it('brings unit, users, folders, manual pages and completions, and nothing for development', async () => {
    const there = [
      'systemd/system/mountkeeper.service',
      'sysusers.d/mountkeeper.conf',
      'tmpfiles.d/mountkeeper.conf',
    ].map((path) => `usr/lib/${path}`);
    const shared = [
      'man/man1/mountkeeper.1.gz',
      'man/man5/mountkeeper.toml.5.gz',
      'man/man8/mountkeeper.8.gz',
      'bash-completion/completions/mountkeeper',
      'doc/mountkeeper/copyright',
    ];
    for (const path of [...there, ...shared.map((name) => `usr/share/${name}`)])
      assert.ok((await stat(join(root, path))).isFile(), path);
    const modules = await readdir(`${root}/usr/lib/mountkeeper/node_modules`);
    assert.ok(
      modules.includes('prom-client') &&
        !modules.includes('typescript') &&
        !modules.includes('playwright-core'),
    );
    assert.match(
      await readFile(`${root}/usr/lib/systemd/system/mountkeeper.service`, 'utf8'),
      /^ExecStart=\/usr\/bin\/mountkeeper run/m,
    );
  });

  it('runs by its own Node.js wherever it lies', async () => {
    const program = `${root}/usr/bin/mountkeeper`;
    const env = { PATH: '/usr/bin:/bin' };
    assert.equal((await run(program, ['--version'], { env })).stdout, `mountkeeper ${await version()}\n`);
    assert.match(
      (await run(program, ['check', '--config', `${root}/usr/lib/mountkeeper/config/default.toml`], { env }))
        .stdout,
      /valid/,
    );
    const own = (await run(`${root}/usr/lib/mountkeeper/bin/node`, ['--version'])).stdout.trim();
    const pins = JSON.parse(await readFile(`${PROJECT}config/package/node-binaries.json`, 'utf8')) as {
      version: string;
    };
    assert.equal(own, `v${pins.version}`);
  });

  it('reads its core, its plugins and their packages from few files, and none of them twice', async () => {
    const lib = `${root}/usr/lib/mountkeeper`;
    const help = await modulesRead(lib, scratch.path('help'), [`${root}/usr/bin/mountkeeper`, 'help']);
    assert.ok(help.modules.filter((path) => /^dist\/plugins\/[^/]+\/index\.js$/.test(path)).length > 20);
    assert.ok(help.modules.length < 150, `${help.modules.length} files`);
    const stranger = [`${lib}/bin/node`, '--input-type=module', '--eval', INSTANCES] as const;
    const imported = await modulesRead(lib, scratch.path('imported'), stranger);
    assert.deepEqual(JSON.parse(imported.stdout), { isOneJoi: true, isOneServer: true });
    assert.deepEqual([...outsideBundle(help.modules), ...outsideBundle(imported.modules)], []);
  });

  it('keeps the code of each plugin in its folder, by which an error is assigned to it', async () => {
    const dist = `${root}/usr/lib/mountkeeper/dist`;
    const files = (await readdir(dist, { recursive: true })).filter((path) =>
      /\/chunks\/|\/index\.js$/.test(path),
    );
    const misplaced: string[] = [];
    for (const file of files) {
      const owner = /^core|^plugins\/[^/]+/.exec(file)?.[0] ?? '';
      // The bundler names each module where its code begins.
      const modules = (await readFile(join(dist, file), 'utf8')).matchAll(
        /^\/\/(?:#region)? ?dist\/(\S+)$/gm,
      );
      for (const [, module = ''] of modules)
        if (!module.startsWith(`${owner}/`)) misplaced.push(`${module} in ${file}`);
    }
    assert.ok(files.length > 60);
    assert.deepEqual(misplaced, []);
    const contents = await Promise.all(files.map((file) => readFile(join(dist, file), 'utf8')));
    const maps = await Promise.all(
      files.map(async (file) => {
        const text = await readFile(join(dist, `${file}.map`), 'utf8').catch(() => '{"sources":[]}');
        const { sources } = JSON.parse(text) as { readonly sources: readonly string[] };
        return sources.map((source) => join(dist, file, '..', source));
      }),
    );
    const mapped = maps.flat();
    assert.ok(
      mapped.includes(join(dist, 'plugins/mount/lifecycle/mounter.js')),
      'the log names places in modules',
    );
    for (const file of mapped.filter((one) => one.startsWith(`${dist}/plugins/`))) await stat(file);
    const withLgpl = contents.filter((text) => text.includes('// node_modules/openpgp/'));
    assert.equal(withLgpl.length, 0, 'its licence wants it in a folder of its own');
  });

  it('keeps a share and shows its dashboard', () =>
    assertWorks(scratch, 'debian', `${root}/usr/bin/mountkeeper`));

  it('has the types that a plugin in TypeScript is checked with, and no other sources of packages', async () => {
    await assertAuthorCanWork(scratch, 'debian', `${root}/usr/bin/mountkeeper`);
    const packages = `${root}/usr/lib/mountkeeper/node_modules`;
    const sources = (await readdir(packages, { recursive: true })).filter((path) => /\.[cm]?ts$/.test(path));
    assert.deepEqual(
      sources.filter((path) => !/\.d\.[cm]?ts$/.test(path) || /^(?:openpgp|undici|bree)\//.test(path)),
      [],
    );
    const sizes = await Promise.all(sources.map(async (path) => (await stat(join(packages, path))).size));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 500_000 && bytes < 1_000_000, `${bytes} bytes of types`);
  });
});

describe('what npm publishes', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('npm');
  });
  after(() => scratch.close());

  it('works when it is installed into an empty prefix', async () => {
    const archive = await packForNpm(scratch.path('packed'));
    const prefix = scratch.path('prefix');
    await run(
      'npm',
      [
        'install',
        '--global',
        '--prefix',
        prefix,
        '--prefer-offline',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        archive,
      ],
      { timeout: 180_000, cwd: scratch.path('packed') },
    );
    const program = `${prefix}/bin/mountkeeper`;
    assert.equal((await run(program, ['--version'])).stdout, `mountkeeper ${await version()}\n`);
    assert.match(
      (
        await run(program, [
          'check',
          '--config',
          `${prefix}/lib/node_modules/mountkeeper/config/default.toml`,
        ])
      ).stdout,
      /valid/,
    );
    assert.ok((await stat(`${prefix}/share/man/man1/mountkeeper.1`)).isFile());
    await assertWorks(scratch, 'npm', program);
    await assertAuthorCanWork(scratch, 'npm', program);
  });
});
