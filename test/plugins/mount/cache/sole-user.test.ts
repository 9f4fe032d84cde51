/** Who else works on a cache folder, by real processes of real users. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { userOfCache } from '../../../../plugins/mount/cache/sole-user.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const BOB = 65_534;

describe('a process that names a cache folder', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let cacheDir: string;
  before(async () => {
    scratch = await createScratch('sole-user');
    cacheDir = scratch.path('cache');
    await mkdir(cacheDir);
  });
  after(() => scratch.close());

  const named = async (uid: number, folder = cacheDir): Promise<number> => {
    const script = 'echo up; read -r line; :';
    const child = spawn('sh', ['-c', script, 'x', `--cache-dir=${folder}`], {
      uid,
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    scratch.defer(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    return child.pid ?? 0;
  };

  it("is another user's: it stands in nobody's way, unless the folder is that user's", async () => {
    const bob = await named(BOB);
    assert.equal(await userOfCache(cacheDir), undefined);
    await chown(cacheDir, BOB, BOB);
    assert.equal(await userOfCache(cacheDir), bob);
    await chown(cacheDir, 0, 0);
  });

  it("is another user's: nobody follows its path, which may lead into a share whose NAS is silent", async () => {
    const followed: string[] = [];
    const follow = (folder: string): string => {
      followed.push(folder);
      return folder;
    };
    const [ofBob, ofRoot] = [scratch.path('bob', 'cache'), scratch.path('root', 'cache')];
    await named(BOB, ofBob);
    await named(0, ofRoot);
    assert.equal(await userOfCache(cacheDir, follow), undefined);
    assert.deepEqual([followed.includes(ofBob), followed.includes(ofRoot)], [false, true]);
  });

  it("is root's: it works on it", async () => {
    const root = await named(0);
    assert.equal(await userOfCache(cacheDir), root);
  });
});
