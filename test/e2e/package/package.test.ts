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
import { ARCHITECTURE, buildDeb, packForNpm, run } from '../../support/package/build-packages.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const version = async (): Promise<string> =>
  (JSON.parse(await readFile(`${PROJECT}package.json`, 'utf8')) as { version: string }).version;

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
    packages = await Promise.all(['one', 'two'].map((name) => buildDeb(scratch.path(name), '--fast')));
    root = scratch.path('root');
    await run('dpkg-deb', ['--raw-extract', packages[0] ?? '', root]);
  });
  after(() => scratch.close());

  it('is the same byte for byte when it is built again', async () => {
    const [one, two] = await Promise.all(packages.map((file) => readFile(file)));
    assert.ok(one !== undefined && two !== undefined && one.length > 1_000_000);
    assert.equal(Buffer.compare(one, two), 0);
  });

  it('names this architecture, what it needs, and a checksum for each file', async () => {
    const control = await readFile(`${root}/DEBIAN/control`, 'utf8');
    assert.match(control, new RegExp(`^Version: ${await version()}\nArchitecture: ${ARCHITECTURE}\n`, 'm'));
    assert.match(control, /^Depends: .*\bfuse3\b/m);
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

  it('keeps a share and shows its dashboard', () =>
    assertWorks(scratch, 'debian', `${root}/usr/bin/mountkeeper`));
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
  });
});
