import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createRcloneFinder } from '../../../../plugins/mount/rclone/installed.ts';
import type { RcloneFinder } from '../../../../plugins/mount/rclone/installed.ts';

const PROVIDERS = JSON.stringify([
  {
    Name: 'sftp',
    Prefix: 'sftp',
    Options: [{ Name: 'host' }, { Name: 'pass', IsPassword: true, Sensitive: true }],
  },
]);

describe('what rclone is, over restarts', () => {
  let folder: string;
  let asked: string[];
  let version: string;
  const binary = (): string => join(folder, 'rclone');
  const kept = (): string => join(folder, 'mount', 'rclone.json');

  /** As a daemon has it after its start. */
  const finder = (stateDir = folder): RcloneFinder => {
    const run = async ({ args }: { readonly args: readonly string[] }) => {
      const question = args.slice(2).join(' ');
      asked.push(question);
      if (question === 'config providers') return { code: 0, signal: null, stdout: PROVIDERS, stderr: '' };
      return { code: 0, signal: null, stdout: `${version}\nmore`, stderr: '' };
    };
    const made = createRcloneFinder({ run } as unknown as Parameters<typeof createRcloneFinder>[0]);
    made.rememberIn(stateDir);
    return made;
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-rclone-memory-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    asked = [];
    version = 'rclone v1.99';
    await rm(join(folder, 'mount'), { recursive: true, force: true });
    await writeFile(binary(), 'one');
    await chmod(binary(), 0o755);
  });

  it('makes no state folder where there is none', async () => {
    await finder(join(folder, 'none')).find(binary());
    assert.equal(asked.length, 1);
    await assert.rejects(stat(join(folder, 'none')), { code: 'ENOENT' });
  });

  it('is asked once, and is the same after a restart without asking', async () => {
    const first = await finder().find(binary());
    assert.equal(asked.length, 1);
    const { ino } = await stat(kept());
    assert.deepEqual(await finder().find(binary()), first);
    assert.deepEqual(first, { command: binary(), version: 'rclone v1.99' });
    assert.equal(asked.length, 1);
    assert.equal((await stat(kept())).ino, ino, 'what is known is not written again');
    assert.equal((await stat(kept())).mode & 0o777, 0o600);
  });

  it('is refused when it is too old, and asked again next time', async () => {
    version = 'rclone v1.60.1-DEV';
    await assert.rejects(finder().find(binary()), /v1\.60\.1-DEV is too old/);
    await assert.rejects(finder().find(binary()), /too old/);
    assert.equal(asked.length, 2, 'one that is refused is not kept');
  });

  it('is asked again once the binary is another one', async () => {
    await finder().find(binary());
    await utimes(binary(), new Date(), new Date(Date.now() - 60_000));
    await finder().find(binary());
    assert.equal(asked.length, 2);
  });

  it('is asked again when what was kept is torn, of another form or cannot be written', async () => {
    await finder().find(binary());
    const whole = await readFile(kept(), 'utf8');
    for (const broken of [
      whole.slice(0, 40),
      'null',
      '[]',
      whole.replace('"format":1', '"format":2'),
      whole.replace(/"version":"[^"]*"/, '"version":1'),
    ]) {
      asked = [];
      await writeFile(kept(), broken);
      assert.equal((await finder().find(binary())).version, 'rclone v1.99', broken.slice(0, 30));
      assert.equal(asked.length, 1, broken.slice(0, 30));
    }
    await rm(join(folder, 'mount'), { recursive: true });
    await writeFile(join(folder, 'mount'), 'a file in the place of the folder');
    assert.equal((await finder().find(binary())).version, 'rclone v1.99');
    await rm(join(folder, 'mount'));
  });

  it('is asked once for its kinds of remote, and again once the binary is another one', async () => {
    await mkdir(join(folder, 'mount'));
    const first = await finder().providers(binary());
    assert.deepEqual(first, [
      {
        types: ['sftp'],
        options: [
          { name: 'host', isPassword: false, isSensitive: false },
          { name: 'pass', isPassword: true, isSensitive: true },
        ],
      },
    ]);
    assert.deepEqual(await finder().providers(binary()), first);
    assert.deepEqual(asked, ['config providers']);
    await utimes(binary(), new Date(), new Date(Date.now() - 60_000));
    await finder().providers(binary());
    assert.equal(asked.length, 2);
  });

  it('makes no folder for its kinds of remote: who only checks a document may be another user', async () => {
    await finder().providers(binary());
    await assert.rejects(stat(join(folder, 'mount')), { code: 'ENOENT' });
  });

  it('is asked again for its kinds of remote when what was kept cannot be trusted', async () => {
    await mkdir(join(folder, 'mount'));
    await finder().providers(binary());
    const file = join(folder, 'mount', 'rclone-backends.json');
    const whole = await readFile(file, 'utf8');
    for (const broken of [
      whole.slice(0, 60),
      'null',
      whole.replace('"isPassword":true', '"isPassword":"yes"'),
      whole.replace(/"providers":.*\]/, '"providers":[]'),
      whole.replace('"types":["sftp"]', '"types":[]'),
    ]) {
      asked = [];
      await writeFile(file, broken);
      assert.equal(
        (await finder().providers(binary()))[0]?.options[1]?.isPassword,
        true,
        broken.slice(0, 60),
      );
      assert.deepEqual(asked, ['config providers'], broken.slice(-60));
    }
  });
});
