import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { useCompiled } from '../../../core/platform/compile-cache.ts';

describe('what V8 made of the modules', () => {
  let stateDir: string;
  let used: string[];
  const use = (mayMake: boolean): Promise<void> =>
    useCompiled(stateDir, { mayMake, enable: (folder) => used.push(folder) });

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'mk-compiled-'));
    used = [];
  });
  afterEach(() => rm(stateDir, { recursive: true, force: true }));

  it('lies in a folder of this version that only the daemon makes, and nobody else may enter', async () => {
    await use(false);
    assert.deepEqual(used, []);
    assert.deepEqual(await readdir(stateDir), []);
    await use(true);
    await use(false);
    const [folder = ''] = used;
    assert.deepEqual(used, [folder, folder]);
    assert.ok(
      folder.startsWith(join(stateDir, 'compiled/')) && folder.endsWith(process.versions.node),
      folder,
    );
    for (const path of [folder, join(stateDir, 'compiled')])
      assert.equal((await stat(path)).mode & 0o777, 0o700);
  });

  it('is thrown away by another version of the package or of Node.js, and when there is too much', async () => {
    await use(true);
    const [folder = ''] = used;
    await mkdir(join(stateDir, 'compiled/0.0.9-node-18.0.0/v18'), { recursive: true });
    await writeFile(join(folder, 'kept'), '');
    await use(true);
    assert.deepEqual(await readdir(join(stateDir, 'compiled')), [folder.split('/').at(-1)]);
    assert.deepEqual(await readdir(folder), ['kept']);
    await Promise.all(Array.from({ length: 4_001 }, (_, index) => writeFile(join(folder, `${index}`), '')));
    await use(true);
    assert.deepEqual(await readdir(folder), []);
  });

  it('is not used where others could write, nor behind a link that leads there', async () => {
    await use(true);
    const [folder = ''] = used.splice(0);
    for (const place of [stateDir, join(stateDir, 'compiled'), folder]) {
      await chmod(place, 0o770);
      for (const mayMake of [true, false]) await use(mayMake);
      await chmod(place, 0o700);
    }
    await rm(join(stateDir, 'compiled'), { recursive: true });
    await mkdir(join(stateDir, 'open'), { recursive: true });
    await chmod(join(stateDir, 'open'), 0o777);
    await symlink('open', join(stateDir, 'compiled'));
    await use(true);
    assert.deepEqual(used, []);
  });

  it('hinders no start: without a state folder, without the means', async () => {
    await rm(stateDir, { recursive: true });
    await use(true);
    await useCompiled(stateDir, { mayMake: true, enable: undefined });
    assert.deepEqual(used, []);
    await assert.rejects(stat(stateDir), { code: 'ENOENT' });
  });
});
