import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Logger, ShortCommand } from 'mountkeeper';
import { blocksOf, writtenZeros } from '../../../../plugins/mount/cache/disk-blocks.ts';
import type { FileMeta } from '../../../../plugins/mount/cache/metadata.ts';
import { settleIdentity } from '../../../../plugins/mount/cache/identity.ts';
import { contentRanges, covers, unite } from '../../../../plugins/mount/cache/ranges.ts';
import { markClean, repairCache } from '../../../../plugins/mount/recovery/repair.ts';
import { cachedShares, pendingIn, pendingOf } from '../../../../plugins/mount/cache/scan.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import { runShortCommand } from '../../../../core/platform/processes/short-command.ts';
import { SKIPS } from '../../../runner/skips.ts';

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
} as unknown as Logger;
const clock = createClock();
const AT = '2026-11-21T05:00:00.000Z';

describe('a cache that a killed rclone left', () => {
  let root: string;
  let cache: string;
  const data = (path: string): string => join(cache, 'vfs', 'nas', path);
  const meta = (path: string): string => join(cache, 'vfsMeta', 'nas', path);
  const put = async (file: string, content: string | Buffer): Promise<void> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const record = (changes: Partial<FileMeta>): string =>
    JSON.stringify({ ModTime: AT, ATime: AT, Size: 0, Rs: null, Fingerprint: '', Dirty: true, ...changes });
  const recordOf = async (path: string): Promise<FileMeta> =>
    JSON.parse(await readFile(meta(path), 'utf8')) as FileMeta;
  const repair = (): Promise<readonly string[]> => repairCache(cache, silent, clock);

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-cache-'));
    cache = join(root, 'photos');
    await put(join(cache, 'in-use'), '');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it("marks all of a file that replaced the remote's as written, though its metadata is older", async () => {
    await put(data('a'), 'twelve bytes');
    await put(meta('a'), record({ Size: 0, Rs: null, Fingerprint: '500,2026' }));
    assert.deepEqual(await repair(), ['a']);
    assert.deepEqual((await recordOf('a')).Rs, [{ Pos: 0, Size: 12 }]);
  });

  it("has no gap past the end of the remote's file, which would keep rclone 1.60 waiting for ever", async () => {
    await put(data('a'), Buffer.alloc(100_000));
    await put(meta('a'), record({ Size: 100_000, Rs: [{ Pos: 0, Size: 10 }], Fingerprint: '40000,2026' }));
    await repair();
    assert.deepEqual((await recordOf('a')).Rs, [
      { Pos: 0, Size: 10 },
      { Pos: 40_000, Size: 60_000 },
    ]);
  });

  it('keeps a change in place and leaves what was never fetched to the remote', async () => {
    await put(data('a'), '');
    await truncate(data('a'), 100_000);
    const bytes = Buffer.alloc(100_000);
    bytes.write('changed', 50_000);
    await writeFile(data('a'), bytes);
    await put(meta('a'), record({ Size: 100_000, Rs: [{ Pos: 0, Size: 10 }], Fingerprint: '100000,2026' }));
    await repair();
    assert.deepEqual((await recordOf('a')).Rs, [
      { Pos: 0, Size: 10 },
      { Pos: 50_000, Size: 7 },
    ]);
  });

  it('sends up whole content whose record was cut off', async () => {
    await put(data('sub/a'), 'content');
    await put(meta('sub/a'), '{ "ModTime": "2026-');
    assert.equal((await pendingIn(cache)).count, 1);
    assert.deepEqual(await repair(), ['sub/a']);
    const { Dirty, Rs } = await recordOf('sub/a');
    assert.deepEqual({ Dirty, Rs }, { Dirty: true, Rs: [{ Pos: 0, Size: 7 }] });
  });

  it('completes a rename that was cut off between content and record', async () => {
    await put(data('new.txt'), 'content');
    await utimes(data('new.txt'), new Date(AT), new Date(AT));
    await put(meta('new.txt.tmp'), record({ Size: 7, Rs: [{ Pos: 0, Size: 7 }] }));
    assert.deepEqual(await repair(), ['new.txt']);
    assert.equal((await recordOf('new.txt')).Dirty, true);
  });

  it('completes one over a file that was cached, too', async () => {
    await put(data('new.txt'), 'content');
    await utimes(data('new.txt'), new Date(AT), new Date(AT));
    await put(meta('new.txt'), record({ Size: 3, Dirty: false, Fingerprint: '3,2025' }));
    await put(meta('new.txt.tmp'), record({ Size: 7, Rs: [{ Pos: 0, Size: 7 }] }));
    assert.deepEqual(await repair(), ['new.txt']);
    assert.equal((await recordOf('new.txt')).Dirty, true);
  });

  it('keeps content aside that belongs to no record, and empty litter not', async () => {
    await put(data('orphan'), 'content');
    await put(data('empty'), '');
    await repair();
    const kept = await readdir(join(cache, 'recovered'), { recursive: true });
    assert.deepEqual(
      kept.filter((path) => /orphan|empty/.test(path)).map((path) => path.split('/').at(-1)),
      ['orphan'],
    );
  });

  it('is left as it is after an orderly end', async () => {
    await put(data('a'), 'twelve bytes');
    await put(meta('a'), record({}));
    await markClean(cache);
    assert.deepEqual(await repair(), []);
    assert.equal((await recordOf('a')).Rs, null);
  });

  it('tells what waits, with paths relative to the share', async () => {
    await put(data('photos/a'), '12345');
    await put(meta('photos/a'), record({}));
    await put(data('photos/clean'), '1');
    await put(meta('photos/clean'), record({ Dirty: false }));
    assert.deepEqual(await pendingIn(cache, 'photos'), { count: 1, bytes: 5, paths: ['a'] });
    assert.deepEqual(await cachedShares(root), ['photos']);
  });

  it('takes no folder that cannot be read for one without a cache', async () => {
    // Root reads everything; but no call takes a path of more than 4095 bytes.
    let deep = root;
    while (deep.length < 3_900) deep = join(deep, 'x'.repeat(99));
    await mkdir(deep, { recursive: true });
    assert.deepEqual(await cachedShares(deep), []);
    const name = 'y'.repeat(250);
    assert.equal(spawnSync('mkdir', [name], { cwd: deep }).status, 0);
    try {
      assert.deepEqual(await cachedShares(deep), [name]);
      await assert.rejects(pendingIn(join(deep, name)), /ENAMETOOLONG/);
    } finally {
      spawnSync('rmdir', [name], { cwd: deep });
    }
  });

  it('sets dirty files of another place aside and brings them back with it', async () => {
    await settleIdentity(cache, 'first', () => Promise.resolve(false));
    await put(data('a'), '12345');
    await put(meta('a'), record({}));
    assert.deepEqual(await settleIdentity(cache, 'second', async () => (await pendingIn(cache)).count > 0), {
      setAside: true,
    });
    assert.equal((await pendingIn(cache)).count, 0);
    assert.equal((await pendingOf(cache)).count, 1);
    await settleIdentity(cache, 'first', () => Promise.resolve(false));
    assert.deepEqual(await pendingIn(cache), { count: 1, bytes: 5, paths: ['a'] });
  });

  it("keeps zeros that were written over the remote's data, where blocks can be told from holes", async (t) => {
    const clean = { run: (command: ShortCommand) => runShortCommand(command, clock) };
    await put(data('a'), '');
    await truncate(data('a'), 400_000);
    const handle = await open(data('a'), 'r+');
    // Zeros alone; then some between and after other bytes, in blocks that are not all written.
    await handle.write(Buffer.alloc(65_536), 0, 65_536, 40_960);
    const mixed = Buffer.alloc(20_000);
    mixed.write('begins');
    await handle.write(mixed, 0, mixed.length, 204_800 + 100);
    await handle.close();
    await put(meta('a'), record({ Size: 400_000, Rs: [{ Pos: 0, Size: 10 }], Fingerprint: '400000,2026' }));
    if ((await blocksOf(data('a'), clean)).length === 0) return t.skip(SKIPS.blockMap.reason);
    await repairCache(cache, silent, clock, clean);
    assert.deepEqual((await recordOf('a')).Rs, [
      { Pos: 0, Size: 10 },
      { Pos: 40_960, Size: 65_536 },
      { Pos: 204_900, Size: 4 * 4_096 - 100 },
    ]);
  });

  it('forgets clean files of another place', async () => {
    await settleIdentity(cache, 'first', () => Promise.resolve(false));
    await put(data('a'), '12345');
    await put(meta('a'), record({ Dirty: false }));
    await settleIdentity(cache, 'second', () => Promise.resolve(false));
    await assert.rejects(readFile(data('a')), { code: 'ENOENT' });
  });
});

describe('byte ranges', () => {
  it('are united within the file', () => {
    assert.deepEqual(
      unite(
        [
          { Pos: 5, Size: 5 },
          { Pos: 0, Size: 5 },
          { Pos: 20, Size: 50 },
        ],
        30,
      ),
      [
        { Pos: 0, Size: 10 },
        { Pos: 20, Size: 10 },
      ],
    );
    assert.ok(
      covers(
        [
          { Pos: 0, Size: 3 },
          { Pos: 3, Size: 3 },
        ],
        6,
      ),
    );
    assert.ok(!covers([{ Pos: 0, Size: 3 }], 6));
    assert.ok(covers(null, 0));
  });

  it('of zeros are told from holes by the blocks that the file has', async () => {
    const content = [{ Pos: 8_200, Size: 10 }];
    assert.deepEqual(
      writtenZeros(
        [
          { Pos: 4_096, Size: 16_384 },
          { Pos: 40_960, Size: 8_192 },
        ],
        content,
      ),
      [
        { Pos: 8_192, Size: 8_192 },
        { Pos: 40_960, Size: 8_192 },
      ],
    );
    assert.deepEqual(
      writtenZeros([{ Pos: 40_960, Size: 4_096 }], content),
      [],
      'a few bytes may have been cleared there',
    );
    const extents = (flags: string) =>
      blocksOf('f', {
        run: async () => ({
          code: 0,
          signal: null,
          stderr: '',
          stdout:
            'File size of f is 6000000\n ext: logical\n' +
            `   0:  8192..  16383: 1..     8192: 8192:   0: ${flags}\n` +
            '   1: 16384.. 20479: 9..    4104: 4096:            \nf: 2 extents found\n',
        }),
      });
    assert.deepEqual(await extents('last,eof'), [{ Pos: 8_192, Size: 12_288 }]);
    assert.deepEqual(await extents('last,unwritten,eof'), [{ Pos: 16_384, Size: 4_096 }]);
    assert.deepEqual(
      await blocksOf('f', {
        run: async () => ({ code: 22, signal: null, stdout: '', stderr: 'unsupported' }),
      }),
      [],
    );
    assert.deepEqual(
      await blocksOf('a\n   0: 0.. 4095: 1.. 4096: 4096:', {
        run: () => Promise.reject(new Error('not asked')),
      }),
      [],
    );
  });

  it('of content are found between holes, zeros between neighbours kept', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mk-ranges-'));
    try {
      const bytes = Buffer.alloc(40_960);
      bytes.fill(1, 4_096, 8_190);
      bytes.fill(2, 8_200, 8_300);
      bytes.fill(3, 30_000, 30_001);
      await writeFile(join(folder, 'f'), bytes);
      assert.deepEqual(await contentRanges(join(folder, 'f'), bytes.length), [
        { Pos: 4_096, Size: 4_204 },
        { Pos: 30_000, Size: 1 },
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
