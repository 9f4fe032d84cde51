import assert from 'node:assert/strict';
import { link, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { FileMeta } from '../../../../plugins/mount/cache/metadata.ts';
import { filesBelow } from '../../../../plugins/mount/cache/metadata.ts';
import { pendingIn } from '../../../../plugins/mount/cache/scan.ts';
import { mendFormer } from '../../../../plugins/mount/former/former-files.ts';
import { beginReadOnlyCache } from '../../../../plugins/mount/former/read-only-cache.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const AT = '2026-11-21T05:00:00.000Z';
const NO_BLOCKS = { run: () => Promise.reject(new Error('not installed')) };

describe('a write cache that a former version left', () => {
  let cache: string;
  const data = (path: string): string => join(cache, 'vfs', 'nas', path);
  const meta = (path: string): string => join(cache, 'vfsMeta', 'nas', path);
  const put = async (file: string, content: string | Buffer): Promise<void> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const record = (changes: Partial<FileMeta>): string =>
    JSON.stringify({
      ModTime: AT,
      ATime: AT,
      Size: 0,
      Rs: null,
      Fingerprint: '',
      Dirty: true,
      ...changes,
    });
  const rangesOf = async (path: string): Promise<FileMeta['Rs']> =>
    (JSON.parse(await readFile(meta(path), 'utf8')) as FileMeta).Rs;
  const mend = (): Promise<void> =>
    mendFormer({
      cacheDir: cache,
      log: collectLog().log,
      clock: createClock(),
      processes: NO_BLOCKS,
    });
  const below = async (folder: string): Promise<string[]> => {
    const found: string[] = [];
    for await (const path of filesBelow(join(cache, folder))) found.push(path);
    return found.map((path) => path.split('/').slice(1).join('/')).sort();
  };

  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'mk-former-'));
  });
  afterEach(() => rm(cache, { recursive: true, force: true }));

  it("marks all of a file that replaced the remote's as written, though its metadata is older", async () => {
    await put(data('a'), 'twelve bytes');
    await put(meta('a'), record({ Fingerprint: '500,2026' }));
    await mend();
    assert.deepEqual(await rangesOf('a'), [{ Pos: 0, Size: 12 }]);
  });

  it('keeps a change in place and leaves what was never fetched to the remote', async () => {
    const bytes = Buffer.alloc(100_000);
    bytes.write('changed', 50_000);
    await put(data('a'), bytes);
    await put(
      meta('a'),
      record({
        Size: 100_000,
        Rs: [{ Pos: 0, Size: 10 }],
        Fingerprint: '100000,2026',
      }),
    );
    await mend();
    assert.deepEqual(await rangesOf('a'), [
      { Pos: 0, Size: 10 },
      { Pos: 50_000, Size: 7 },
    ]);
  });

  it('keeps aside what cannot be told: content without a record, or with one that was cut off', async () => {
    await put(data('d/torn'), 'content');
    await put(meta('d/torn'), '{ "ModTime": "2026-');
    await put(data('orphan'), 'content');
    await put(data('empty'), '');
    await put(data('hole'), '');
    await truncate(data('hole'), 100_000);
    await put(meta('missing'), record({ Size: 5 }));
    assert.equal((await pendingIn(cache)).count, 2);
    await mend();
    assert.deepEqual(await below('recovered'), ['d/torn', 'orphan']);
    assert.deepEqual([(await pendingIn(cache)).count, await below('vfs')], [0, []]);
  });

  it('has the newest changes again that rclone gave up in an outage, and keeps older ones aside', async () => {
    for (const [number, content] of ['1 older', '2 newer'].entries()) {
      await put(join(cache, 'held', `00000${number}`, 'data', 'a'), content);
      await put(join(cache, 'held', `00000${number}`, 'meta', 'a'), record({ Size: 7 }));
    }
    await put(data('kept'), 'kept');
    await put(meta('kept'), record({ Size: 4 }));
    await mkdir(join(cache, 'guarded', 'data'), { recursive: true });
    await link(data('kept'), join(cache, 'guarded', 'data', 'kept'));
    assert.equal((await pendingIn(cache)).count, 4);
    await mend();
    assert.equal(await readFile(data('a'), 'utf8'), '2 newer');
    assert.deepEqual(await below('recovered'), ['a']);
    assert.deepEqual((await pendingIn(cache)).paths, ['a', 'kept']);
    assert.deepEqual(
      (await readdir(cache)).filter((name) => /held|guarded/.test(name)),
      [],
    );
  });

  it('counts nothing in a cache with which rclone only ever read', async () => {
    await put(data('a'), 'content');
    await put(meta('a'), record({ Size: 7 }));
    assert.equal((await pendingIn(cache)).count, 1);
    await beginReadOnlyCache(cache);
    assert.equal((await pendingIn(cache)).count, 0);
  });
});
