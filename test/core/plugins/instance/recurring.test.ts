import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { startInterval, startJob } from '../../../../core/plugins/instance/recurring.js';
import { collectLog } from '../../../support/platform/collected-log.ts';

function bench() {
  const clock = createManualClock();
  const { log, entries } = collectLog();
  return { clock, entries, options: { clock, log, signal: new AbortController().signal } };
}

describe('interval', () => {
  it('runs again its time after the last end, never two at once', async () => {
    const { clock, options } = bench();
    const starts: number[] = [];
    const interval = startInterval(
      {
        name: 'i',
        ms: () => 100,
        run: async () => {
          starts.push(clock.monotonic());
          await clock.sleep(250);
        },
      },
      options,
    );
    await clock.advance(1_000);
    assert.deepEqual(starts, [100, 450, 800]);
    const released = interval.release();
    await clock.advance(250);
    await released;
    assert.equal(clock.pending, 0);
  });

  it('goes on after a run that failed and says so', async () => {
    const { clock, options, entries } = bench();
    let runs = 0;
    const interval = startInterval(
      {
        name: 'i',
        ms: () => 10,
        run: async () => {
          runs += 1;
          throw new Error('oops');
        },
      },
      options,
    );
    await clock.advance(30);
    assert.equal(runs, 3);
    assert.equal(entries[0]?.['interval'], 'i');
    await interval.release();
  });

  it('pauses at zero and takes a changed time over from the last end on', async () => {
    const { clock, options } = bench();
    let ms = 0;
    const starts: number[] = [];
    const interval = startInterval(
      {
        name: 'i',
        ms: () => ms,
        run: async () => {
          starts.push(clock.monotonic());
        },
      },
      options,
    );
    await clock.advance(1_000);
    ms = 1_500;
    await interval.refresh();
    await clock.advance(500);
    assert.deepEqual(starts, [1_500]);
    ms = 0;
    await interval.refresh();
    await clock.advance(10_000);
    assert.deepEqual(starts, [1_500]);
    await interval.release();
  });

  it('says of a run that does not end since when it goes on, starts no other on top, and lets go in time', async () => {
    const { clock, options, entries } = bench();
    let runs = 0;
    const never = (): Promise<never> => new Promise(() => void (runs += 1));
    const interval = startInterval({ name: 'i', ms: () => 1_000, run: never }, { ...options, stopMs: 5_000 });
    await clock.advance(60_999);
    assert.equal(interval.late(), undefined);
    const since = new Date(clock.now() - 59_999).toISOString().replace(/\.\d+Z$/, 'Z');
    await clock.advance(600_000);
    assert.equal(runs, 1);
    assert.equal(
      interval.late(),
      `its interval "i" has been running since ${since}, and the next run waits for that`,
    );
    const told = entries.filter(({ msg }) => msg === 'a run takes long; no other begins before it ends');
    assert.deepEqual(
      told.map(({ run, since: from }) => [run, from]),
      [['interval "i"', since]],
    );
    const released = interval.release();
    await clock.advance(5_000);
    await released;
    assert.equal(entries.at(-1)?.['msg'], 'interval does not stop and is abandoned');
    assert.deepEqual([interval.late(), clock.pending], [undefined, 0]);
  });

  it('says nothing of a long run once that has ended', async () => {
    const { clock, options } = bench();
    const run = (): Promise<void> => clock.sleep(90_000);
    const interval = startInterval({ name: 'i', ms: () => 1_000, run }, options);
    await clock.advance(80_000);
    assert.match(interval.late() ?? '', /^its interval "i" has been running since /);
    await clock.advance(12_000);
    assert.equal(interval.late(), undefined);
    const released = interval.release();
    await clock.advance(90_000);
    await released;
  });
});

describe('job', () => {
  it('says of a run that does not end since when it goes on, and what becomes of its other times', async () => {
    const { clock, options } = bench();
    const runs: ((signal: AbortSignal) => Promise<void>)[] = [];
    const scheduler = {
      add: async (job: { run?: (signal: AbortSignal) => Promise<void> }) => {
        if (job.run) runs.push(job.run);
        return () => undefined;
      },
    };
    const never = (): Promise<never> => new Promise(() => undefined);
    const job = await startJob(
      { name: 'nightly', cron: () => '0 3 * * *', run: never },
      { ...options, plugin: 'p', scheduler },
    );
    void runs[0]?.(options.signal);
    await clock.advance(60_000);
    assert.match(
      job.late() ?? '',
      /^its job "nightly" has been running since \S+Z, and the times that come before it ends are left out$/,
    );
    await job.release();
    assert.deepEqual([job.late(), clock.pending], [undefined, 0]);
  });

  it('is put on the schedule under its plugin, moved when its expression changes, and taken away', async () => {
    const { options } = bench();
    const scheduled = new Map<string, string>();
    const scheduler = {
      add: async (job: { key: string; cron: () => string }) => {
        scheduled.set(job.key, job.cron());
        return () => {
          scheduled.delete(job.key);
        };
      },
    };
    let cron = '0 3 * * *';
    const job = await startJob(
      { name: 'nightly', cron: () => cron, run: async () => undefined },
      { ...options, plugin: 'p', scheduler },
    );
    assert.deepEqual([...scheduled], [['p/nightly', '0 3 * * *']]);
    cron = '0 4 * * *';
    await job.refresh();
    assert.deepEqual([...scheduled], [['p/nightly', '0 4 * * *']]);
    cron = '';
    await job.refresh();
    assert.equal(scheduled.size, 0);
    cron = '0 5 * * *';
    await job.refresh();
    assert.equal(scheduled.size, 1);
    await job.release();
    assert.equal(scheduled.size, 0);
  });
});
