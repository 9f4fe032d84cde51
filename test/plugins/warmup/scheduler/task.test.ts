import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readTasks, writeTasks } from '../../../../plugins/warmup/scheduler/saved-tasks.ts';
import { noticesOf } from '../../../../plugins/warmup/scheduler/notices.ts';
import { NO_COUNTS } from '../../../../plugins/warmup/job-description.ts';
import type { Outcome } from '../../../../plugins/warmup/job-description.ts';
import { summaryOf, Task } from '../../../../plugins/warmup/scheduler/task.ts';
import type { TaskState } from '../../../../plugins/warmup/scheduler/task.ts';

const target = { share: 'photos', path: '', newerThan: null, isDryRun: false };
const counted = (state: TaskState, counts: object = {}) => ({ state, counts: { ...NO_COUNTS, ...counts } });

describe('a warmup task', () => {
  it('goes from pending over listing and caching to its end', () => {
    const ends: Record<Outcome, readonly [TaskState, boolean]> = {
      complete: ['complete', false],
      failed: ['failed', false],
      full: ['failed', false],
      away: ['pending', true],
      stopped: ['pending', true],
    };
    for (const [outcome, [state, isWanted]] of Object.entries(ends)) {
      const task = new Task(target);
      assert.equal(task.state, 'pending');
      task.want();
      task.begin();
      assert.deepEqual([task.state, task.counts], ['listing', NO_COUNTS]);
      task.heard({ kind: 'counts', phase: 'caching', counts: { ...NO_COUNTS, total: 2, cached: 1 } });
      assert.equal(task.state, 'caching');
      task.ended({ outcome: outcome as Outcome, reason: '' });
      assert.deepEqual(
        [task.state, task.isWanted, task.isFull, task.counts.cached],
        [state, isWanted, outcome === 'full', 1],
        outcome,
      );
    }
  });

  it('says in a notice how many files do not fit', () => {
    const task = new Task(target);
    task.begin();
    task.heard({
      kind: 'counts',
      phase: 'caching',
      counts: { ...NO_COUNTS, total: 10, skipped: 2, cached: 3, errors: 1 },
    });
    task.ended({ outcome: 'full', reason: 'x' });
    assert.match(
      noticesOf([task, new Task(target)])
        .map((notice) => notice.message)
        .join(),
      /^The warmup of all on the share photos stopped: 4 of 10 files do not fit/,
    );
  });
});

describe('the warmup state of a share', () => {
  it('is that of its least finished rule, with a failure before all', () => {
    const states = (...list: TaskState[]): string =>
      summaryOf(list.map((state) => counted(state))).warmupState;
    assert.deepEqual(
      [
        states(),
        states('complete'),
        states('complete', 'caching'),
        states('caching', 'listing'),
        states('listing', 'pending', 'complete'),
        states('pending', 'failed', 'complete'),
      ],
      ['none', 'complete', 'caching', 'listing', 'pending', 'failed'],
    );
    const { warmupDone, warmupTotal } = summaryOf([
      counted('caching', { total: 5, skipped: 1, cached: 2, errors: 1 }),
      counted('complete', { total: 4, skipped: 4 }),
    ]);
    assert.deepEqual([warmupDone, warmupTotal], [7, 9]);
  });
});

describe('what a warmup came to', () => {
  it('survives the daemon; what was under way is due again', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mk-warmup-memory-'));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'deep', 'tasks.json');
    assert.equal((await readTasks(file)).size, 0);
    const [done, cutOff] = [new Task(target), new Task({ ...target, path: '中', newerThan: '3d' })];
    done.begin();
    done.ended({ outcome: 'complete', reason: '' });
    cutOff.begin();
    await writeTasks(file, [done, cutOff]);
    const read = await readTasks(file);
    assert.deepEqual(
      [...read.values()].map(({ state, isWanted, target: { path, newerThan } }) => [
        state,
        isWanted,
        path,
        newerThan,
      ]),
      [
        ['complete', false, '', null],
        ['pending', true, '中', '3d'],
      ],
    );
    const [good] = (JSON.parse(await readFile(file, 'utf8')) as { tasks: object[] }).tasks;
    const bad = [
      { path: '../etc' },
      { path: 7 },
      { newerThan: 'soon' },
      { share: null },
      { state: 'great' },
      { counts: {} },
      { counts: { ...NO_COUNTS, total: 'x' } },
      { isWanted: 'no' },
    ];
    const mixed = [...bad.map((part) => ({ ...good, ...part })), null, good];
    await writeFile(file, JSON.stringify({ tasks: mixed }));
    assert.deepEqual([...(await readTasks(file)).keys()], [done.key]);
    await writeFile(file, (await readFile(file, 'utf8')).slice(0, 40));
    assert.equal((await readTasks(file)).size, 0);
  });
});
