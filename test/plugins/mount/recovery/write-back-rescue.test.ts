import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { createClock } from 'mountkeeper';
import { pino } from 'pino';
import { treesOf } from '../../../../plugins/mount/cache/metadata.ts';
import type { FileMeta } from '../../../../plugins/mount/cache/metadata.ts';
import { namesOf } from '../../../../plugins/mount/recovery/failed-write-back.ts';
import { WriteBackRescue } from '../../../../plugins/mount/recovery/write-back-rescue.ts';

const AT = '2026-11-21T05:00:00.000Z';
const meta: FileMeta = {
  ModTime: AT,
  ATime: AT,
  Size: 4_000,
  Rs: [{ Pos: 0, Size: 10 }],
  Fingerprint: '4000,2026',
  Dirty: true,
};

function rescueIn(cacheDir: string): WriteBackRescue {
  const unused = (): never => assert.fail('not needed here');
  return new WriteBackRescue({
    cacheDir,
    trees: treesOf(cacheDir),
    clock: createClock(),
    log: pino({ level: 'silent' }),
    tail: async () => [],
    openFiles: unused,
    deletedFiles: unused,
    copy: unused,
    saveRecord: unused,
    restart: unused,
  });
}

it('one changed file that cannot be protected keeps no other from it, and is told of until it can', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'mk-rescue-'));
  const trees = treesOf(cacheDir);
  try {
    for (const path of ['a', 'b']) {
      await mkdir(dirname(join(trees.data, path)), { recursive: true });
      await writeFile(join(trees.data, path), Buffer.alloc(4_000));
    }
    // The place of the second name is taken by a folder with something in it.
    const blocked = namesOf(cacheDir, 'a').content;
    await mkdir(join(blocked, 'x'), { recursive: true });
    const rescue = rescueIn(cacheDir);
    const files = { open: 2, dirty: ['a', 'b'].map((path) => ({ path, meta })) };
    await rescue.tend(files);
    assert.match(rescue.trouble ?? '', /cannot be protected \(a: /);
    const inode = async (path: string): Promise<number> => (await stat(path)).ino;
    assert.equal(await inode(namesOf(cacheDir, 'b').content), await inode(join(trees.data, 'b')));
    await rm(blocked, { recursive: true });
    await rescue.tend(files);
    assert.equal(rescue.trouble, undefined);
    assert.equal(await inode(blocked), await inode(join(trees.data, 'a')));
    assert.equal(await rescue.countUnfinished(), 0);
    // rclone gives up a file: it counts until the rescue has looked after it.
    await rm(join(trees.data, 'b'));
    assert.equal(await rescue.countUnfinished(), 1);
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});

it('people hear of it where no second name can be made, be there no room or no links', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'mk-rescue-'));
  // Another file system, to which no link leads.
  const elsewhere = await mkdtemp(join(process.env['MOUNTKEEPER_TEST_MEMORY'] ?? '/dev/shm', 'mk-rescue-'));
  try {
    const content = join(treesOf(cacheDir).data, 'a');
    await mkdir(dirname(content), { recursive: true });
    await writeFile(content, Buffer.alloc(4_000));
    const folder = dirname(dirname(namesOf(cacheDir, 'a').content));
    await symlink(elsewhere, folder);
    const rescue = rescueIn(cacheDir);
    const files = { open: 1, dirty: [{ path: 'a', meta }] };
    await rescue.tend(files);
    assert.match(rescue.trouble ?? '', /cannot be protected \(a: EXDEV/);
    assert.deepEqual(await readdir(join(elsewhere, 'data')), []);
    await rm(folder);
    await writeFile(folder, 'no folder');
    await rescue.tend(files);
    assert.match(rescue.trouble ?? '', /cannot be protected \(a: E(NOTDIR|EXIST).*mkdir/);
    await rm(folder);
    await rescue.tend(files);
    assert.equal(rescue.trouble, undefined);
    assert.equal((await stat(namesOf(cacheDir, 'a').content)).ino, (await stat(content)).ino);
  } finally {
    for (const folder of [cacheDir, elsewhere]) await rm(folder, { recursive: true, force: true });
  }
});
