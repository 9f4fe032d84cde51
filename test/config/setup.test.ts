import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PLUGINS_USER, SERVICE_USER } from '../../core/platform/processes/rights.ts';

const SETUP = fileURLToPath(new URL('../../../config/setup', import.meta.url));

interface BareMachine {
  readonly folder: string;
  installed(): Promise<string>;
  program(name: string, text: string): Promise<void>;
}

/** A machine that has nothing but Node and apt-get, and a user who is not root. */
async function bareMachine(t: TestContext): Promise<BareMachine> {
  const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-bare-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const program = async (name: string, text: string): Promise<void> => {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder, name), 0o755);
  };
  const programs = {
    id: 'echo 1000',
    dirname: `exec /usr/bin/dirname "$@"`,
    'apt-get': `echo "$@" >>${folder}/installed`,
  };
  for (const [name, text] of Object.entries(programs)) await program(name, text);
  await symlink(process.execPath, join(folder, 'node'));
  return { folder, program, installed: () => readFile(join(folder, 'installed'), 'utf8').catch(() => '') };
}

function setUp(path: string, ...args: string[]): { readonly status: number | null; readonly stderr: string } {
  return spawnSync('/bin/sh', [SETUP, ...args], {
    env: { PATH: path },
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: 20_000,
  });
}

describe('config/setup', () => {
  it('says what to run where packages are missing and it may not install them', async (t) => {
    const { folder, installed } = await bareMachine(t);
    const { status, stderr } = setUp(folder);
    assert.equal(status, 1);
    assert.equal(stderr.split(' needs root; ')[1], `run as root: sh ${SETUP} --packages\n`);
    assert.match(stderr, /^setup: these packages are missing: fuse3 /);
    assert.equal(await installed(), '');
  });

  it('names all that the tests need in one line, and sudo where it is there', async (t) => {
    const { folder, program } = await bareMachine(t);
    await program('sudo', 'exit 1');
    const { status, stderr } = setUp(folder, '--test');
    assert.equal(status, 1);
    assert.match(
      stderr,
      new RegExp(
        '^setup: these packages are missing: [^\\n]* smbclient [^\\n]* litmus [^\\n]*; ' +
          'run: sudo sh \\S+config/setup --packages --test\\n$',
      ),
    );
  });

  it('mends a machine whose last installation was cut short, and says what its apt-get complains of', async (t) => {
    const { folder, installed, program } = await bareMachine(t);
    await program('id', 'echo 0');
    for (const tool of ['env', 'grep', 'mktemp', 'rm', 'tail'])
      await program(tool, `exec /usr/bin/${tool} "$@"`);
    await program('dpkg', `echo dpkg "$@" >>${folder}/installed`);
    await program(
      'apt-get',
      `echo apt-get "$@" >>${folder}/installed\necho "Reading lists"\necho "W: the mirror cannot be reached"\nexit 100`,
    );
    const { status, stderr } = setUp(folder, '--packages', '--test');
    const orders = (await installed()).split('\n').map((line) =>
      line
        .split(' ')
        .filter((word) => /^(dpkg|apt-get|--configure|update|install)$/.test(word))
        .join(' '),
    );
    assert.deepEqual(
      [status, orders.slice(0, 4)],
      [1, ['apt-get install', 'dpkg --configure', 'apt-get update', 'apt-get install']],
    );
    assert.match(
      stderr,
      /^W: the mirror cannot be reached\nsetup: apt-get could not install .*; the lines above say why/m,
    );
    assert.doesNotMatch(stderr, /Reading lists/);
  });

  it('names the packages where there is no apt-get', async (t) => {
    const { folder } = await bareMachine(t);
    await rm(join(folder, 'apt-get'));
    const { status, stderr } = setUp(folder);
    assert.equal(status, 1);
    assert.match(stderr, /with your system's package manager: fuse3 .* bindfs /);
  });

  it('makes the users that processes run as, as the package does', async () => {
    const text = await readFile(SETUP, 'utf8');
    const ofPackage = await readFile(
      new URL('../../../config/debian/sysusers.conf', import.meta.url),
      'utf8',
    );
    for (const user of [SERVICE_USER, PLUGINS_USER]) {
      assert.match(text, new RegExp(`^ {2}service_user ${user} /`, 'm'));
      assert.match(ofPackage, new RegExp(`^u ${user} - `, 'm'));
    }
  });

  it('refuses an option that it does not know', () => {
    const { status, stderr } = setUp('/usr/bin:/bin', '--tests');
    assert.deepEqual(
      [status, stderr],
      [64, "setup: '--tests' is not known here; use nothing, --demo, --test or --package\n"],
    );
  });
});
