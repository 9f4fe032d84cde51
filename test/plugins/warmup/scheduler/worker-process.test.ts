/** The real helper process, with a module in place of the mount's. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Order, Report } from '../../../../plugins/warmup/job-description.ts';
import { startHelper } from '../../../../plugins/warmup/scheduler/worker-process.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { rightsOfRoots, rootsRights } from '../../../support/platform/rights.ts';
import { allProcesses } from '../../../support/platform/processes.ts';
import { until } from '../../../support/platform/wait.ts';

const LISTS = `export const openCacheView = ({ word }) => ({ aheadBytes: 1, answers: async () => true,
  list: async () => ({ folders: [], files: [
    { name: 'a', bytes: 3, modifiedMs: 1, isCached: true },
    { name: word, bytes: 4, modifiedMs: 1, isCached: false },
  ] }) });`;
const SEPARATED = `const names = ['a\\u2028b', 'c\\u2029d', 'e\\nf', 'g\\rh'];
const files = names.map((name) => ({ name, bytes: 4, modifiedMs: 1, isCached: false }));
export const openCacheView = () => ({
  aheadBytes: 1, isWhole: () => true, holds: () => true, answers: async () => true,
  roomBytes: async () => 1e9, transfers: async () => [], list: async () => ({ folders: [], files }),
});`;
const BABBLES =
  'process.stdout.write("babble\\n"); ' +
  'export const openCacheView = () => ({ list: () => ' +
  'new Promise(() => setInterval(() => undefined, 1000)) });';
const HANGS =
  'export const openCacheView = () => ({ list: () => new Promise(() => setInterval(() => undefined, 1000)) });';
const GONE = 'export const openCacheView = () => { throw new Error("no such process"); };';

async function begin(t: TestContext, module: string, isDryRun = true) {
  const folder = await mkdtemp(join(tmpdir(), 'mk-warmup-worker-'));
  await writeFile(join(folder, 'view.mjs'), module);
  const order: Order = {
    module: join(folder, 'view.mjs'),
    parameters: { word: 's3cret' },
    mountPoint: folder,
    path: '',
    changedSinceMs: null,
    concurrency: 4,
    otherMounts: [],
    isDryRun,
    listFile: join(folder, 'list'),
  };
  const reports: Report[] = [];
  const helper = startHelper(order, (report) => {
    reports.push(report);
    if (report.kind === 'refresh') helper.tell({ refreshed: report.id });
  });
  const processes = async () => (await allProcesses()).filter((one) => one.args.includes(order.listFile));
  t.after(async () => {
    helper.stop();
    await until('it is gone', async () => (await processes()).length === 0, { timeoutMs: 20_000 });
    await rm(folder, { recursive: true, maxRetries: 5 });
  });
  return { helper, reports, processes };
}

describe('the helper process', () => {
  it('reads all files, and may nothing else of what root may', { skip: unlessRoot }, async (t) => {
    const { processes } = await begin(t, HANGS);
    const isWorking = async () =>
      (await processes()).find(({ args }) => args[1]?.endsWith('/worker.js') === true);
    const { pid } = await until('it works', isWorking, { timeoutMs: 20_000 });
    assert.deepEqual(await rightsOfRoots(pid), rootsRights('dac_read_search'));
  });

  it('tells what it finds, and ends by itself', async (t) => {
    const { helper, reports, processes } = await begin(t, LISTS);
    assert.deepEqual(await helper.ended, { outcome: 'complete', reason: '' });
    const last = reports.at(-1);
    assert.deepEqual(
      last?.kind === 'counts' && [
        last.counts.total,
        last.counts.skipped,
        last.counts.totalBytes,
        last.counts.skippedBytes,
      ],
      [2, 1, 7, 3],
    );
    await until('it is gone', async () => (await processes()).length === 0, { timeoutMs: 20_000 });
  });

  it('goes through files whose names hold ends of lines, and tells them apart', async (t) => {
    const { helper, reports } = await begin(t, SEPARATED, false);
    assert.deepEqual(await helper.ended, { outcome: 'complete', reason: '' });
    const problems = reports.filter((report) => report.kind === 'problem').map(({ path }) => path);
    assert.deepEqual(
      problems.sort(),
      ['a\u2028b', 'c\u2029d', 'e\nf', 'g\rh'],
      'none of them is there to be read',
    );
    assert.deepEqual(
      reports.flatMap((report) => (report.kind === 'refresh' ? [[report.folder, report.isDeep]] : [])),
      [['', true], ...problems.map(() => ['', false])],
      'the mount looks anew once before, and before each second try',
    );
  });

  it('fails alone when it says what nobody understands', async (t) => {
    const { outcome, reason } = await (await begin(t, BABBLES)).helper.ended;
    assert.deepEqual([outcome, /not understood/.test(reason)], ['failed', true], reason);
  });

  it('is ended at once, and shows no secret while it runs', async (t) => {
    const { helper, processes } = await begin(t, HANGS);
    const [seen] = await until(
      'it runs',
      async () => ((await processes()).length > 0 ? processes() : undefined),
      { timeoutMs: 20_000 },
    );
    assert.doesNotMatch(seen?.command ?? '', /s3cret/);
    helper.stop();
    assert.equal((await helper.ended).outcome, 'stopped');
    await until('it is gone', async () => (await processes()).length === 0, { timeoutMs: 20_000 });
  });

  it('takes a mount that has ended for one that is away, and a fault of its own for a failure', async (t) => {
    assert.deepEqual(await (await begin(t, GONE)).helper.ended, {
      outcome: 'away',
      reason: 'no such process',
    });
    const { outcome, reason } = await (await begin(t, 'nonsense(')).helper.ended;
    assert.deepEqual([outcome, /ended with 1/.test(reason)], ['failed', true], reason);
  });
});
