import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { createCutAnew } from '../../../plugins/mount/cut-anew.ts';
import type { UploadLook } from '../../../plugins/mount/cut-anew.ts';
import type { FileMeta } from '../../../plugins/mount/cache-meta.ts';
import type { CutOutcome, SoleCut } from '../../../plugins/mount/sole-cut.ts';
import { treesOf } from '../../../plugins/mount/cache-meta.ts';

const AT = '2026-11-21T05:00:00.000Z';
const never = new AbortController().signal;
const idle: UploadLook = { works: false, open: [], names: [] };
const works: UploadLook = { ...idle, works: true };

describe('a file that was made shorter and has its old end again', () => {
  let cache: string;
  const done: string[] = [];
  const gone: { name: string; completed_at: string; error: string }[] = [];
  let calls = 0;
  const told = async (name: string, { bytes, inCache }: SoleCut): Promise<CutOutcome> => {
    done.push(`${name} to ${bytes}${inCache ? ' in the cache' : ''}`);
    return 'cut';
  };
  let cut = told;
  const look = () => createCutAnew({
    rc: { call: async <T>() => (calls += 1, { transferred: [...gone] } as T), close: () => undefined },
    trees: treesOf(cache), fs: 'nas:team', log: pino({ level: 'silent' }), cut: (name, how) => cut(name, how),
  });
  const lies = async (name: string, bytes: number, meta: Partial<FileMeta> = {}): Promise<void> => {
    const trees = treesOf(cache);
    for (const [root, content] of [[trees.data, Buffer.alloc(bytes, 1)], [trees.meta, record(bytes, meta)]] as const) {
      await mkdir(dirname(join(root, 'team', name)), { recursive: true });
      await writeFile(join(root, 'team', name), content);
    }
  };
  const hasGoneUp = async (name: string, bytes: number, meta: Partial<FileMeta> = {}): Promise<void> => {
    await lies(name, bytes, meta);
    gone.push({ name, completed_at: `${AT} ${gone.length}`, error: '' });
  };
  /** As rclone closes it: with the record's time on the content. */
  const wasClosed = async (name: string, bytes: number, meta: Partial<FileMeta>): Promise<string> => {
    await lies(name, bytes, { ...meta, Dirty: true });
    const ModTime = timeOf((await stat(join(treesOf(cache).data, 'team', name), { bigint: true })).mtimeNs);
    await writeFile(join(treesOf(cache).meta, 'team', name), record(bytes, { ...meta, ModTime, Dirty: true }));
    return ModTime;
  };

  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'mk-cut-'));
    done.length = gone.length = calls = 0;
    cut = told;
  });
  afterEach(() => rm(cache, { recursive: true, force: true }));

  it('is cut anew once it has gone up, and others are left alone', async () => {
    await hasGoneUp('sub/short', 3_000, { Size: 1_000 });
    await hasGoneUp('whole', 3_000);
    await hasGoneUp('changed since', 3_000, { Size: 1_000, Dirty: true });
    await hasGoneUp('longer on the NAS', 3_000, { Size: 3_000, Fingerprint: '5000,2026' });
    await hasGoneUp('in part here', 3_000, { Size: 1_000, Rs: [{ Pos: 0, Size: 1_000 }] });
    await look()(works, never);
    assert.deepEqual(done, ['sub/short to 1000']);
  });

  it('is none whose name a folder has taken since, which keeps nobody from looking at others', async () => {
    await lies('branch/file', 10);
    gone.push({ name: 'branch', completed_at: AT, error: '' });
    await hasGoneUp('short', 3_000, { Size: 1_000 });
    await look()(works, never);
    assert.deepEqual(done, ['short to 1000']);
  });

  it('is not looked at again when it has been cut, and is again after its next upload', async () => {
    const again = look();
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    await again(works, never);
    await hasGoneUp('a', 1_000);
    await again(works, never);
    assert.deepEqual(done, ['a to 1000']);
    await hasGoneUp('a', 900, { Size: 500 });
    await again(works, never);
    assert.deepEqual(done, ['a to 1000', 'a to 500']);
  });

  it('counts until it is cut, which is tried three times', async () => {
    const again = look();
    let tries = 0;
    cut = () => Promise.reject(new Error(`the share is read-only now, ${tries += 1}`));
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    const counts: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      counts.push(await again(works, never));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([tries, counts], [3, [1, 1, 1, 0, 0]]);
  });

  it('costs no call while nothing goes up, but for one look in sixteen', async () => {
    const again = look();
    for (let round = 0; round < 32; round += 1) await again(idle, never);
    assert.equal(calls, 2);
    await again(works, never);
    await again(idle, never);
    await again(idle, never);
    assert.equal(calls, 4);
  });

  it('is cut in the cache before it goes up, once nobody has it open', async () => {
    const again = look();
    await lies('team is not a folder', 10);
    await again({ ...works, open: ['team/a', 'team/b'] }, never);
    const modified = await wasClosed('a', 3_000, { Size: 1_000 });
    await wasClosed('b', 3_000, { Size: 1_000 });
    await again({ ...works, open: ['team/b'] }, never);
    assert.deepEqual(done, ['a to 1000 in the cache']);
    assert.ok(modified.length > 20);
    await again(works, never);
    assert.deepEqual(done.slice(1).sort(), ['a to 1000 in the cache', 'b to 1000 in the cache']);
  });

  it('is not taken for one before rclone has closed it: what is past its record may have been written', async () => {
    const again = look();
    await lies('a', 3_000, { Size: 1_000, Dirty: true });
    await lies('whole seconds', 3_000, { Size: 1_000, Dirty: true });
    await utimes(join(treesOf(cache).data, 'team', 'whole seconds'), new Date(AT), new Date(AT));
    assert.equal(await again({ ...works, names: ['a', 'whole seconds'] }, never), 0);
    assert.deepEqual(done, []);
  });

  it('is still cut when somebody has read it meanwhile, but never when somebody has written to it', async () => {
    cut = async (name, { inCache }) => (inCache ? 'open elsewhere' : await told(name, { bytes: 1_000 } as SoleCut));
    const again = look();
    const times = new Map<string, string>();
    for (const name of ['read', 'appended to', 'changed in place']) times.set(name, await wasClosed(name, 3_000, { Size: 1_000 }));
    await again({ ...works, names: [...times.keys()] }, never);
    await lies('read', 3_000, { ModTime: times.get('read') ?? '', Dirty: true });
    await again(works, never);
    assert.deepEqual(done, []);
    await hasGoneUp('read', 3_000, { ModTime: times.get('read') ?? '' });
    await hasGoneUp('appended to', 3_500, { ModTime: '2026-11-21T06:00:00.123456789Z' });
    await hasGoneUp('changed in place', 3_000, { ModTime: '2026-11-21T06:00:00.123456789Z' });
    assert.equal(await again(works, never), 1);
    assert.deepEqual(done, ['read to 1000']);
  });

  it('is asked for seldom while somebody has it open', async () => {
    let asked = 0;
    cut = async () => { asked += 1; return 'open elsewhere'; };
    const again = look();
    await hasGoneUp('a', 3_000, { Size: 1_000 });
    for (let round = 0; round < 10; round += 1) {
      assert.equal(await again(works, never), 1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(asked, 4);
  });
});

function record(bytes: number, meta: Partial<FileMeta>): string {
  return JSON.stringify({ ModTime: AT, ATime: AT, Size: bytes, Rs: [{ Pos: 0, Size: bytes }], Fingerprint: `${bytes},2026`, Dirty: false, ...meta }, undefined, '\t');
}

function timeOf(ns: bigint): string {
  return `${new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19)}.${String(ns % 1_000_000_000n).padStart(9, '0')}Z`;
}
