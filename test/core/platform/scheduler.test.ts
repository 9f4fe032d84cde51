import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { createClock } from '../../../core/platform/clock.ts';
import { createScheduler } from '../../../core/platform/scheduler.ts';
import type { ScheduledJob } from '../../../core/platform/scheduler.ts';
import { createWorkerJobs } from '../../../core/platform/worker-jobs.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until, within } from '../../support/platform/wait.ts';
import { collectLog } from '../../support/platform/collected-log.ts';

const MINUTE = 60_000;

function open(start = '2026-11-21T05:00:30Z') {
  const clock = createManualClock(Date.parse(start));
  let setByMs = 0;
  const collected = collectLog();
  const scheduler = createScheduler({
    clock: {
      now: () => clock.now() + setByMs,
      monotonic: () => clock.monotonic(),
      after: (ms, fn) => clock.after(ms, fn),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      deadline: (ms, parent) => clock.deadline(ms, parent),
    },
    log: collected.log,
  });
  return {
    clock,
    ...collected,
    scheduler,
    /** Sets the wall clock alone, as an administrator or a machine's sleep does. */
    setWallClock: (time: string) => void (setByMs = Date.parse(time) - clock.now()),
  };
}

function job(given: Partial<ScheduledJob> = {}): ScheduledJob & { times: number } {
  const counted = {
    key: 'warmup/nightly',
    name: 'nightly',
    cron: () => '* * * * *',
    timezone: () => 'UTC',
    times: 0,
    run: async () => void (counted.times += 1),
    ...given,
  };
  return counted;
}

describe('scheduler', () => {
  it('runs a job whenever its time comes, not before', async () => {
    const { clock, scheduler } = open();
    const counted = job();
    await scheduler.add(counted);
    await clock.advance(29_000);
    assert.equal(counted.times, 0);
    await clock.advance(2_000);
    assert.equal(counted.times, 1);
    await clock.advance(5 * MINUTE);
    assert.equal(counted.times, 6);
    await scheduler.close();
    await clock.advance(5 * MINUTE);
    assert.equal(counted.times, 6);
    assert.equal(clock.pending, 0);
  });

  it('keeps to the time zone', async () => {
    const { clock, scheduler } = open('2026-11-21T01:00:00Z');
    const counted = job({ cron: () => '0 3 * * *', timezone: () => 'Europe/Berlin' });
    await scheduler.add(counted);
    await clock.advance(59 * MINUTE);
    assert.equal(counted.times, 0);
    await clock.advance(2 * MINUTE);
    assert.equal(counted.times, 1);
    await scheduler.close();
  });

  it('runs once, late, what came while the machine slept, and goes by a clock that was set back', async () => {
    const { clock, scheduler, setWallClock } = open('2026-11-21T05:00:30Z');
    const counted = job({ cron: () => '0 6 * * *' });
    await scheduler.add(counted);
    setWallClock('2026-11-23T09:00:00Z');
    await clock.advance(MINUTE);
    assert.equal(counted.times, 1);
    setWallClock('2026-11-21T05:58:00Z');
    await clock.advance(3 * MINUTE);
    assert.equal(counted.times, 2);
    await scheduler.close();
  });

  it('never runs a job beside itself', async () => {
    const { clock, scheduler, messages } = open();
    let running = 0;
    let started = 0;
    let finish: () => void = () => undefined;
    await scheduler.add(
      job({
        run: async () => {
          started += 1;
          running += 1;
          assert.equal(running, 1);
          await new Promise<void>((resolve) => (finish = resolve));
          running -= 1;
        },
      }),
    );
    await clock.advance(3 * MINUTE);
    assert.equal(started, 1);
    assert.ok(messages().some((message) => message.includes('still runs')));
    finish();
    await clock.advance(MINUTE);
    assert.equal(started, 2);
    finish();
    await scheduler.close();
  });

  it("logs a failure with the job's key and runs it again the next time", async () => {
    const { clock, scheduler, entries } = open();
    let times = 0;
    await scheduler.add(
      job({
        run: async () => {
          times += 1;
          throw new Error('no such share');
        },
      }),
    );
    await clock.advance(2 * MINUTE);
    assert.equal(times, 2);
    const failures = entries.filter((entry) => entry['msg'] === 'job failed');
    assert.equal(failures.length, 2);
    assert.equal(failures[0]?.['job'], 'warmup/nightly');
    assert.match(JSON.stringify(failures[0]), /"message":"no such share"/);
    await scheduler.close();
  });

  it('aborts a running job when it is released, without calling that a failure', async () => {
    const { clock, scheduler, messages } = open();
    let reason: unknown;
    const release = await scheduler.add(
      job({
        run: (signal) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reason = signal.reason;
              reject(reason as Error);
            });
          }),
      }),
    );
    await clock.advance(MINUTE);
    await release();
    assert.match((reason as Error).message, /stopped/);
    assert.ok(!messages().includes('job failed'));
    await scheduler.add(job());
    await scheduler.close();
  });

  it('does not wait for ever for a job that heeds no signal', async () => {
    const { clock, log, messages } = open();
    const scheduler = createScheduler({ clock, log });
    const release = await scheduler.add(job({ run: () => new Promise(() => undefined) }));
    await clock.advance(MINUTE);
    const released = Promise.resolve(release());
    await clock.advance(MINUTE);
    await within('release', 20_000, released);
    assert.ok(messages().includes('job does not stop and is abandoned'));
    await within('close', 20_000, scheduler.close());
  });

  it('refuses a wrong expression and a key that is taken, and leaves an empty expression off', async () => {
    const { clock, scheduler } = open();
    await assert.rejects(
      scheduler.add(job({ cron: () => '@daily' })),
      /job warmup\/nightly: "@daily" is a nickname/,
    );
    await assert.rejects(
      scheduler.add(job({ timezone: () => 'Mars/X' })),
      /time zone "Mars\/X" is not known/,
    );
    const off = await scheduler.add(job({ cron: () => '' }));
    assert.equal(clock.pending, 0);
    await assert.rejects(scheduler.add(job()), /already scheduled/);
    await off();
    await scheduler.add(job());
    await scheduler.close();
    await assert.rejects(scheduler.add(job({ key: 'other' })), /closed/);
  });
});

describe('worker files', () => {
  let scratch: Scratch;
  const clock = createClock();
  const forEver = new AbortController().signal;
  before(async () => {
    scratch = await createScratch('workers');
  });
  after(() => scratch.close());

  async function worker(name: string, text: string): Promise<string> {
    await writeFile(scratch.path(name), text);
    return scratch.path(name);
  }

  it('runs in a thread with its data, again and again, also several at once', async () => {
    const jobs = createWorkerJobs({ clock, log: collectLog().log });
    const file = await worker(
      'append.mjs',
      `import { workerData, isMainThread } from 'node:worker_threads';
      import { appendFileSync } from 'node:fs';
      appendFileSync(workerData.data.file, String(isMainThread) + '\\n');`,
    );
    const data = { file: scratch.path('out') };
    await jobs.run('夜 间/nightly', { file, data }, forEver);
    await jobs.run('夜 间/nightly', { file, data }, forEver);
    await Promise.all(['a', 'b', 'c'].map((key) => jobs.run(key, { file, data }, forEver)));
    assert.equal(readFileSync(data.file, 'utf8'), 'false\n'.repeat(5));
    await jobs.close();
  });

  it('reports what a worker throws once, and a file that is missing', async () => {
    const jobs = createWorkerJobs({ clock, log: collectLog().log });
    await assert.rejects(
      jobs.run('bad', { file: await worker('bad.mjs', 'throw new Error("boom")') }, forEver),
      { message: 'boom' },
    );
    await assert.rejects(
      jobs.run('exit', { file: await worker('exit.mjs', 'process.exit(3)') }, forEver),
      /exited with code 3/,
    );
    await assert.rejects(
      jobs.run('syntax', { file: await worker('syntax.mjs', 'const = 1') }, forEver),
      /Unexpected token/,
    );
    await assert.rejects(jobs.run('none', { file: scratch.path('none.mjs') }, forEver), /ENOENT/);
    await assert.rejects(jobs.run('relative', { file: 'x.mjs' }, forEver), /must be an absolute path/);
    await jobs.close();
  });

  it('lets a worker that is asked to stop end by itself, and ends one that does not', async () => {
    const impatient = {
      ...clock,
      after: (ms: number, fn: () => void) => clock.after(Math.min(ms, 200), fn, { keepAlive: true }),
    };
    const jobs = createWorkerJobs({ clock: impatient, log: collectLog().log });
    const kind = await worker(
      'kind.mjs',
      `import { parentPort } from 'node:worker_threads'; import { writeFileSync } from 'node:fs';
      writeFileSync(${JSON.stringify(scratch.path('kind-began'))}, '');
      parentPort.on('message', (message) => {
        writeFileSync(${JSON.stringify(scratch.path('asked'))}, String(message));
        process.exit(0);
      });`,
    );
    const stubborn = await worker(
      'stubborn.mjs',
      "import { writeFileSync } from 'node:fs'; " +
        `writeFileSync(${JSON.stringify(scratch.path('stubborn-began'))}, ''); while (true);`,
    );
    for (const [name, file] of [
      ['kind', kind],
      ['stubborn', stubborn],
    ] as const) {
      const controller = new AbortController();
      const running = jobs.run(name, { file }, controller.signal).then(
        () => undefined,
        () => undefined,
      );
      await until('it runs', () => existsSync(scratch.path(`${name}-began`)), { timeoutMs: 20_000 });
      controller.abort(new Error('stopped'));
      await within(`${name} to end`, 20_000, running);
    }
    assert.equal(readFileSync(scratch.path('asked'), 'utf8'), 'cancel');
    await jobs.close();
  });
});
