import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { TruncateFix } from '../../../../plugins/mount/recovery/truncate-fix.ts';
import type { FileMeta } from '../../../../plugins/mount/cache/metadata.ts';
import { treesOf } from '../../../../plugins/mount/cache/metadata.ts';
import { until } from '../../../support/platform/wait.ts';

const AT = '2026-11-21T05:00:00.000Z';
const never = new AbortController().signal;

describe('a file that was made shorter and has its old end again', () => {
  let cache: string;
  const done: string[] = [];
  const gone: { name: string; completed_at: string; error: string }[] = [];
  let calls = 0;
  let cut = async (name: string, bytes: number): Promise<void> => void done.push(`${name} to ${bytes}`);
  const make = (): TruncateFix =>
    new TruncateFix({
      rc: { call: async <T>() => ((calls += 1), { transferred: [...gone] } as T), close: () => undefined },
      trees: treesOf(cache),
      fs: 'nas:team',
      log: pino({ level: 'silent' }),
      cut: (name, bytes) => cut(name, bytes),
    });
  const look = (): ((works: boolean, signal: AbortSignal) => Promise<number>) => {
    const fix = make();
    return async (works, signal) => {
      const count = await fix.look(works, signal);
      await fix.mend();
      return count;
    };
  };
  const hasGoneUp = async (name: string, bytes: number, meta: Partial<FileMeta> = {}): Promise<void> => {
    const trees = treesOf(cache);
    const record: FileMeta = {
      ModTime: AT,
      ATime: AT,
      Size: bytes,
      Rs: [{ Pos: 0, Size: bytes }],
      Fingerprint: `${bytes},2026`,
      Dirty: false,
      ...meta,
    };
    for (const [root, content] of [
      [trees.data, Buffer.alloc(bytes, 1)],
      [trees.meta, JSON.stringify(record)],
    ] as const) {
      await mkdir(dirname(join(root, 'team', name)), { recursive: true });
      await writeFile(join(root, 'team', name), content);
    }
    gone.push({ name, completed_at: `${AT} ${gone.length}`, error: '' });
  };

  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'mk-cut-'));
    done.length = gone.length = calls = 0;
    cut = async (name, bytes) => void done.push(`${name} to ${bytes}`);
  });
  afterEach(() => rm(cache, { recursive: true, force: true }));

  it('is cut anew once it has gone up, and others are left alone', async () => {
    await hasGoneUp('sub/short', 3_000, { Size: 1_000 });
    await hasGoneUp('whole', 3_000);
    await hasGoneUp('changed since', 3_000, { Size: 1_000, Dirty: true });
    await hasGoneUp('longer on the NAS', 3_000, { Size: 3_000, Fingerprint: '5000,2026' });
    await hasGoneUp('in part here', 3_000, { Size: 1_000, Rs: [{ Pos: 0, Size: 1_000 }] });
    await look()(true, never);
    assert.deepEqual(done, ['sub/short to 1000']);
  });

  it('is not looked at again when it has been cut, and is again after its next upload', async () => {
    const again = look();
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    await again(true, never);
    await hasGoneUp('a', 1_000);
    await again(true, never);
    assert.deepEqual(done, ['a to 1000']);
    await hasGoneUp('a', 900, { Size: 500 });
    await again(true, never);
    assert.deepEqual(done, ['a to 1000', 'a to 500']);
  });

  it('counts until it is cut, which is tried three times', async () => {
    const again = look();
    let tries = 0;
    cut = () => Promise.reject(new Error(`the share is read-only now, ${(tries += 1)}`));
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    const counts: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      counts.push(await again(true, never));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([tries, counts], [3, [1, 1, 1, 1, 0]]);
  });

  it('counts while it is cut, and once more, since other figures may not have it yet', async () => {
    let finish: () => void = () => undefined;
    cut = async () => {
      await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')), Dirty: true }));
      await new Promise<void>((resolve) => (finish = resolve));
    };
    const record = join(treesOf(cache).meta, 'team', 'a');
    const fix = make();
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    assert.equal(await fix.look(true, never), 1);
    const settled = fix.settle();
    await until(
      'the record is dirty',
      async () => (await readFile(record, 'utf8')).includes('"Dirty":true'),
      {
        timeoutMs: 10_000,
      },
    );
    assert.equal(await fix.look(true, never), 1);
    finish();
    await settled;
    assert.deepEqual([await fix.look(true, never), await fix.look(true, never)], [1, 0]);
  });

  it('costs no call while nothing goes up, but for one look in sixteen', async () => {
    const again = look();
    for (let round = 0; round < 32; round += 1) await again(false, never);
    assert.equal(calls, 2);
    await again(true, never);
    await again(false, never);
    await again(false, never);
    assert.equal(calls, 4);
  });
});
