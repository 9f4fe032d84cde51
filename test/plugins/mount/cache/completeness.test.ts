import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  bytesInCache,
  holdsContent,
  isSame,
  isWholeInCache,
} from '../../../../plugins/mount/cache/completeness.ts';

const modifiedMs = Date.parse('2026-11-21T08:56:23.250Z');
const meta = {
  ModTime: '',
  ATime: '',
  Size: 10,
  Rs: [{ Pos: 0, Size: 10 }],
  Fingerprint: '10,2026-11-21 08:56:23.25 +0000 UTC',
  Dirty: false,
};

describe('a file in the cache', () => {
  it('is there in part, by the ranges of its document, where that is of the same version', async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'mk-part-'));
    t.after(() => rm(root, { recursive: true }));
    const trees = { data: join(root, 'data'), meta: join(root, 'meta') };
    for (const folder of Object.values(trees)) await mkdir(folder);
    await writeFile(join(trees.data, 'a'), Buffer.alloc(10));
    const look = async (traits: object, path = 'a'): Promise<number> => {
      await writeFile(join(trees.meta, 'a'), JSON.stringify({ ...meta, ...traits }));
      return bytesInCache(trees, path, { bytes: 10, modifiedMs });
    };
    const Rs = [
      { Pos: 1, Size: 3 },
      { Pos: 2, Size: 3 },
      { Pos: 8, Size: 9 },
    ];
    assert.deepEqual([await look({}), await look({ Rs }), await look({ Rs: null })], [10, 6, 0]);
    assert.equal(await look({ Rs, Fingerprint: '10,2020-01-01 00:00:00 +0000 UTC' }), 0, 'another version');
    assert.deepEqual([await look({ Rs, Size: 11 }), await look({ Rs }, 'other')], [0, 0]);
  });

  it('is whole when its document, its content and the remote agree', async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'mk-whole-'));
    t.after(() => rm(root, { recursive: true }));
    const trees = { data: join(root, 'data'), meta: join(root, 'meta') };
    for (const folder of Object.values(trees)) await mkdir(folder);
    await writeFile(join(trees.data, '中 1'), Buffer.alloc(10));
    const look = async (document: object | string, remote = { bytes: 10, modifiedMs }): Promise<boolean> => {
      await writeFile(
        join(trees.meta, '中 1'),
        typeof document === 'string' ? document : JSON.stringify(document),
      );
      return isWholeInCache(trees, '中 1', remote);
    };
    assert.equal(await look(meta), true);
    assert.equal(
      await look({
        ...meta,
        Rs: [
          { Pos: 0, Size: 4 },
          { Pos: 4, Size: 6 },
        ],
      }),
      true,
    );
    assert.equal(
      await look({ ...meta, Dirty: true, Fingerprint: '' }, { bytes: 3, modifiedMs: 0 }),
      true,
      'changed here and not yet up',
    );
    for (const wrong of [
      { ...meta, Rs: null },
      { ...meta, Rs: [{ Pos: 0, Size: 9 }] },
      { ...meta, Size: 11 },
      '{"Size"',
      { ...meta, Fingerprint: '10,2020-01-01 00:00:00 +0000 UTC' },
    ])
      assert.equal(await look(wrong), false, JSON.stringify(wrong));
    assert.deepEqual(
      [
        await look(meta, { bytes: 11, modifiedMs }),
        await look(meta, { bytes: 10, modifiedMs: modifiedMs + 1_000 }),
      ],
      [false, false],
    );
    assert.deepEqual(
      [10, 0].map((bytes) => isWholeInCache(trees, 'other', { bytes, modifiedMs })),
      [false, true],
    );
    assert.deepEqual(
      [holdsContent(trees, '中 1', 10), holdsContent(trees, '中 1', 11), holdsContent(trees, 'other', 10)],
      [true, false, false],
    );
    await truncate(join(trees.data, '中 1'), 9);
    assert.equal(await look(meta), false, 'content cut off');
    await truncate(join(trees.data, '中 1'), 1_000_000);
    assert.equal(holdsContent(trees, '中 1', 1_000_000), false, 'a hole');
  });

  it('is compared by its time only where the fingerprint has one', () => {
    const remote = { bytes: 10, modifiedMs };
    assert.deepEqual(
      [
        '10',
        '10,d41d8cd98f',
        '10,2026-11-21 08:56:23.25 +0000 UTC,d41d8cd98f',
        '10,2026-11-21 08:56:24 +0000 UTC',
        '',
        '1,d41d8cd98f',
      ].map((Fingerprint) => isSame({ Fingerprint }, remote)),
      [true, true, true, false, false, false],
    );
  });
});
