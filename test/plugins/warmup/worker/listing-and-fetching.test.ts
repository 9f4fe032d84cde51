import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Clock } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { createManualClock } from 'mountkeeper/testing';
import { AwayError } from '../../../../plugins/warmup/worker/unreachable.ts';
import { Fetching } from '../../../../plugins/warmup/worker/fetching.ts';
import { listAll } from '../../../../plugins/warmup/worker/listing.ts';
import { BackPressure } from '../../../../plugins/warmup/worker/back-pressure.ts';
import type { Order, Report } from '../../../../plugins/warmup/job-description.ts';
import { Verifier } from '../../../../plugins/warmup/worker/verifier.ts';
import { readThrough } from '../../../../plugins/warmup/worker/reading.ts';
import { FreeSpace } from '../../../../plugins/warmup/worker/free-space.ts';
import { Counters } from '../../../../plugins/warmup/scheduler/counters.ts';
import { FakeView } from '../fake-view.ts';
import { stepUntil } from '../../../support/platform/wait.ts';

const MIB = 2 ** 20;
const clock = createClock();
const patience = { clock, timeoutMs: 30_000 };

async function room(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mk-warmup-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

function orderIn(folder: string, changes: Partial<Order> = {}): Order {
  return {
    module: '',
    parameters: {},
    mountPoint: join(folder, 'mnt'),
    path: '',
    changedSinceMs: null,
    concurrency: 4,
    otherMounts: [],
    isDryRun: false,
    listFile: join(folder, 'list'),
    ...changes,
  };
}

function newTally(): { readonly tally: Counters; readonly reports: Report[] } {
  const reports: Report[] = [];
  return { tally: new Counters((report) => reports.push(report)), reports };
}

describe('the listing of a warmup', () => {
  const tree = {
    '': { top: 'folder', 'new.bin': 10, 'cached.bin': 5 },
    top: { bad: 'folder', '中 1': 'folder', 'old.bin': 7 },
    'top/bad': {},
    'top/中 1': { 'x.bin': 1, 'cached 2': 2 },
  } as const;
  const listed = async (order: Order): Promise<readonly string[]> =>
    (await readFile(order.listFile, 'utf8'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as [string])[0])
      .sort();

  it('writes down what is not cached', async (t) => {
    const order = orderIn(await room(t));
    const view = new FakeView(tree);
    const { tally } = newTally();
    await listAll(order, { view, counters: tally, patience });
    assert.deepEqual(await listed(order), ['new.bin', 'top/old.bin', 'top/中 1/x.bin']);
    assert.deepEqual(tally.counts, {
      total: 5,
      skipped: 2,
      cached: 0,
      errors: 0,
      totalBytes: 25,
      skippedBytes: 7,
      cachedBytes: 0,
    });
  });

  it('leaves out what changed too long ago, and touches nothing when it only counts', async (t) => {
    const order = orderIn(await room(t), { changedSinceMs: 5_000, isDryRun: true });
    const view = new FakeView(tree);
    const { tally } = newTally();
    await listAll(order, { view, counters: tally, patience });
    assert.deepEqual([tally.counts.total, await listed(order)], [4, []]);
  });

  it('counts a folder that cannot be read once, and goes on with the others', async (t) => {
    const order = orderIn(await room(t));
    const view = new FakeView(tree);
    view.unreadable.add('top/bad').add('top/中 1');
    const { tally, reports } = newTally();
    await listAll(order, { view, counters: tally, patience });
    assert.deepEqual([tally.counts.errors, tally.counts.total], [2, 3]);
    assert.deepEqual(
      new Set(reports.map((report) => report.kind === 'problem' && report.path)),
      new Set(['top/bad', 'top/中 1']),
    );
  });

  it('fails where its topmost folder cannot be read, and blames nothing when the remote is away', async (t) => {
    const order = orderIn(await room(t), { path: 'nowhere' });
    await assert.rejects(
      listAll(order, { view: new FakeView(tree), counters: newTally().tally, patience }),
      (error) => !(error instanceof AwayError),
    );
    const view = new FakeView(tree);
    view.unreadable.add('top');
    view.isThere = false;
    const { tally } = newTally();
    await assert.rejects(listAll(orderIn(await room(t)), { view, counters: tally, patience }), AwayError);
    assert.equal(tally.counts.errors, 0);
  });
});

describe('the fetching of a warmup', () => {
  async function fetching(
    t: TestContext,
    files: Readonly<Record<string, number>>,
    view = new FakeView(),
    time: Clock = clock,
  ) {
    const folder = await room(t);
    const order = orderIn(folder);
    for (const [path, bytes] of Object.entries(files)) {
      await mkdir(dirname(join(order.mountPoint, path)), { recursive: true });
      if (bytes > 0) await writeFile(join(order.mountPoint, path), Buffer.alloc(bytes));
    }
    await writeFile(
      order.listFile,
      Object.entries(files)
        .map(([path, bytes]) => `${JSON.stringify([path, Math.abs(bytes), 1])}\n`)
        .join(''),
    );
    const { tally, reports } = newTally();
    const refreshed: string[] = [];
    const run = new Fetching({
      order,
      refresh: async (looked) => void refreshed.push(looked),
      view,
      clock: time,
      counters: tally,
      patience,
      concurrency: () => 4,
      otherReaders: () => [],
      openFlags: constants.O_RDONLY,
    });
    return { run, view, tally, reports, refreshed };
  }

  it('counts what it sees whole in the cache afterwards', async (t) => {
    const { run, tally } = await fetching(t, { 'a/1': 10, 'a/2': 4_096, 'b c/大': 3 * MIB + 5, empty: 1 });
    assert.deepEqual(await run.run(), { outcome: 'complete', reason: '' });
    assert.deepEqual(
      [tally.counts.cached, tally.counts.cachedBytes, tally.counts.errors],
      [4, 10 + 4_096 + 3 * MIB + 5 + 1, 0],
    );
  });

  it('counts a file that cannot be read as an error, after a second try', async (t) => {
    const { run, tally, refreshed, reports } = await fetching(t, { 'a/1': 10, 'a/gone': -10 });
    assert.equal((await run.run()).outcome, 'complete');
    assert.deepEqual([tally.counts.cached, tally.counts.errors, refreshed], [1, 1, ['a']]);
    assert.match(JSON.stringify(reports), /a\/gone/);
  });

  it('ends without blame when the remote is away', async (t) => {
    const { run, tally, view } = await fetching(t, { gone: -10 });
    view.isThere = false;
    await assert.rejects(run.run(), AwayError);
    assert.equal(tally.counts.errors, 0);
  });

  it('reads again what the cache does not show in time, and then goes by what lies on the disk', async (t) => {
    const view = new FakeView();
    view.keeps = (path) => path === 'a';
    view.held.add('open');
    const manual = createManualClock();
    const { run, tally, reports } = await fetching(t, { a: 10, open: 2 * MIB, lost: 10 }, view, manual);
    let ending: unknown;
    void run.run().then((end) => (ending = end));
    await stepUntil(
      'its end',
      () => ending !== undefined,
      () => manual.advance(250),
    );
    assert.deepEqual([tally.counts.cached, tally.counts.errors], [2, 1]);
    assert.match(JSON.stringify(reports), /"lost".*does not keep it/);
  });

  it('leaves out a file that is too large for the cache, not the small ones after it', async (t) => {
    const view = new FakeView();
    view.room = 2_500;
    const { run, tally } = await fetching(t, { huge: 4_000, a: 1_000, b: 1_000, c: 1_000, d: 300 }, view);
    assert.equal((await run.run()).outcome, 'full');
    assert.deepEqual([tally.counts.cached, tally.counts.cachedBytes, tally.counts.errors], [3, 2_300, 0]);
  });

  it('takes no more than there is room for', async (t) => {
    const view = new FakeView();
    view.room = 2_500;
    const { run, tally } = await fetching(
      t,
      Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`${index}`, 1_000])),
      view,
    );
    assert.equal((await run.run()).outcome, 'full');
    assert.equal(tally.counts.cached, 2);
  });
});

describe('reading one file', () => {
  it('fails when the file is shorter than the remote said', async (t) => {
    const folder = await room(t);
    await writeFile(join(folder, 'x'), Buffer.alloc(100));
    const manners = new BackPressure(new FakeView(), clock);
    await assert.rejects(
      readThrough({
        file: join(folder, 'x'),
        bytes: 200,
        backPressure: manners,
        isThorough: false,
        openFlags: constants.O_RDONLY,
      }),
      /shorter/,
    );
  });
});

describe('the room of a cache', () => {
  it('is measured anew now and then, less what is on its way', async () => {
    const view = new FakeView();
    const manual = createManualClock();
    const left = new FreeSpace(view, manual);
    view.room = 100;
    assert.deepEqual(
      [await left.take(60, 0), await left.take(60, 60), await left.take(40, 60), await left.take(1, 60)],
      [true, false, true, false],
    );
    view.room = 1_000;
    await manual.advance(15_000);
    assert.deepEqual([await left.take(950, 100), await left.take(900, 100)], [false, true]);
  });
});

describe('the proof that a file is cached', () => {
  it('is waited for, and missed in the end', async () => {
    const manual = createManualClock();
    const seen: string[] = [];
    const whole = new Set<string>();
    const proof = new Verifier({
      view: { isWhole: (path) => whole.has(path) },
      clock: manual,
      onWhole: ({ path }) => seen.push(`whole ${path}`),
      onMissing: ({ path }) => seen.push(`missing ${path}`),
    });
    for (const path of ['a', 'b']) proof.expect({ path, bytes: 1, modifiedMs: 1 });
    proof.look();
    assert.deepEqual([seen, proof.isEmpty], [[], false]);
    whole.add('a');
    await manual.advance(6_000);
    proof.look();
    assert.deepEqual(seen, ['whole a']);
    await manual.advance(7_000);
    proof.look();
    assert.deepEqual([seen, proof.isEmpty], [['whole a', 'missing b'], true]);
  });
});
