import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const SETUP = fileURLToPath(new URL('../../../config/setup', import.meta.url));

/** A machine that has nothing but Node and apt-get, and a user who is not root. */
async function bareMachine(t: TestContext): Promise<{ readonly folder: string; readonly installed: () => Promise<string> }> {
  const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-bare-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const programs = { id: 'echo 1000', dirname: `exec /usr/bin/dirname "$@"`, 'apt-get': `echo "$@" >>${folder}/installed` };
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder, name), 0o755);
  }
  await symlink(process.execPath, join(folder, 'node'));
  return { folder, installed: () => readFile(join(folder, 'installed'), 'utf8').catch(() => '') };
}

function setUp(path: string, ...args: string[]): { readonly status: number | null; readonly stderr: string } {
  return spawnSync('/bin/sh', [SETUP, ...args], { env: { PATH: path }, stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8', timeout: 20_000 });
}

describe('config/setup', () => {
  it('says what to run where packages are missing and it may not install them', async (t) => {
    const { folder, installed } = await bareMachine(t);
    const { status, stderr } = setUp(folder);
    assert.equal(status, 1);
    assert.match(stderr, /^setup: these packages are missing: rclone fuse3 .*run: sudo apt-get install -y --no-install-recommends rclone fuse3 [^\n]*\n$/);
    assert.equal(await installed(), '');
  });

  it('names the packages where there is no apt-get', async (t) => {
    const { folder } = await bareMachine(t);
    await rm(join(folder, 'apt-get'));
    const { status, stderr } = setUp(folder);
    assert.equal(status, 1);
    assert.match(stderr, /with your system's package manager: rclone fuse3 /);
  });

  it('refuses an option that it does not know', () => {
    const { status, stderr } = setUp('/usr/bin:/bin', '--tests');
    assert.deepEqual([status, stderr], [64, 'setup: \'--tests\' is not known here; use nothing, --demo or --test\n']);
  });
});
