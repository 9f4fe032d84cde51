// @load loud
// @long
/**
 * Broken and hostile plugins of third parties, each in its own process, beside a good one and a mounted share: the
 * API and the mount go on, the administrator reads who it was and why, and a mended file is up again without a
 * restart of the daemon.
 */
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import { Poll } from '../../support/http/poll.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { Files } from '../../support/platform/file-worker.ts';
import type { LongTask, Tally } from '../../support/platform/file-worker.ts';
import { queueTimes } from '../../support/platform/run-queue.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { HOSTILE, SLOW_ONES } from '../../support/plugins/hostile-plugins.ts';
import { HostileTrial, PATIENCE, WELL } from '../../support/plugins/hostile-trial.ts';
import { inState, runnersOf, source } from '../../support/plugins/strangers.ts';

const LARGE_BYTES = 200_000_000;
/** Of the good plugin. */
const BEAT_MS = 100;
/** Between two questions for the status: closer ones would cost more than most plugins here. */
const STATUS_MS = inForm({ short: 100, long: 20 });
const slowNames = Object.keys(SLOW_ONES).join(', ');

describe('hostile plugins of third parties', { timeout: 1_200_000 }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let trial: HostileTrial;
  let status: Poll;
  let good: Poll;
  let reading: LongTask<Tally>;
  /** Beside all others, since it takes two minutes; in the long form. */
  let slow: Promise<void>;
  let pid: number;
  /** Of the good one's beats, which come ten times a second, without what the queue for a processor took of them. */
  let longestPauseMs = 0;
  let lastBeat = { atMs: 0, queuedMs: 0 };
  /** How long the thread of the good one has stood in that queue, in milliseconds. */
  let queuedMs: () => number;
  const pausedMs = (): number => performance.now() - lastBeat.atMs - (queuedMs() - lastBeat.queuedMs);

  before(async () => {
    scratch = await createScratch('strangers');
    trial = await HostileTrial.start(scratch);
    daemon = trial.daemon;
    pid = daemon.pid;
    reading = new Files(scratch).begin<Tally>({
      op: 'hold-open',
      path: `${daemon.mountPoint('files')}/a.bin`,
    });
    status = new Poll(async () => {
      const { status: code, body } = await daemon.get<{ shares: { mounted: boolean }[] }>('/api/status');
      return code === 200 && body.shares[0]?.mounted === true ? undefined : JSON.stringify(body);
    }, STATUS_MS);
    const [itsPid = 0] = await runnersOf(pid);
    queuedMs = () => queueTimes(itsPid).get(String(itsPid)) ?? 0;
    let last = 0;
    lastBeat = { atMs: performance.now(), queuedMs: queuedMs() };
    good = new Poll(async () => {
      const { status: code, body } = await daemon.get<{ beats: number }>('/ext/good');
      if (body.beats > last) {
        longestPauseMs = Math.max(longestPauseMs, pausedMs());
        lastBeat = { atMs: performance.now(), queuedMs: queuedMs() };
      }
      const isFine = code === 200 && body.beats >= last;
      last = body.beats;
      return isFine ? undefined : JSON.stringify(body);
    }, BEAT_MS);
  });
  after(() => scratch.close());

  before(() => {
    slow = slowNames === '' ? Promise.resolve() : trial.play(SLOW_ONES);
    slow.catch(() => undefined);
  });
  for (const group of HOSTILE)
    it(`are named with the cause, and are well once mended: ${Object.keys(group).join(', ')}`, () =>
      trial.play(group));

  if (slowNames !== '')
    it(`are named when they take long, and are well once mended: ${slowNames}`, () => slow);

  it('may be a link to a folder, and large', async () => {
    const folder = scratch.path('elsewhere', 'linked');
    await mkdir(`${folder}/node_modules/heavy`, { recursive: true });
    await writeFile(`${folder}/package.json`, '{ "type": "module" }');
    await writeFile(`${folder}/index.js`, source('linked', WELL));
    await writeFile(`${folder}/node_modules/heavy/data.bin`, Buffer.alloc(LARGE_BYTES, 1));
    await symlink(folder, scratch.path('plugins', 'linked'));
    await trial.turnOn(['linked']);
    await inState(daemon, 'linked', 'active', PATIENCE.timeoutMs);
    await trial.turnOn();
  });

  it('have disturbed nobody', async () => {
    await Promise.all([status.end(), good.end()]);
    // One that beats no more is in a pause, too.
    longestPauseMs = Math.max(longestPauseMs, pausedMs());
    const { reads, failures } = await reading.stop();
    assert.deepEqual([status.failures, good.failures, failures], [[], [], []]);
    assert.equal(daemon.pid, pid);
    const sorted = status.tookMs.toSorted((a, b) => a - b);
    const [median = 0, slowest = 0] = [sorted[sorted.length >> 1], sorted.at(-1)];
    const almostAll = Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? Infinity);
    console.log(
      `asked ${sorted.length} times, median ${Math.round(median)} ms, 99 % within ` +
        `${almostAll} ms, slowest ${Math.round(slowest)} ms; ${reads} reads; ` +
        `longest pause of the good one ${Math.round(longestPauseMs)} ms`,
    );
    assert.ok(sorted.length > 200 && reads > 20, `${sorted.length} answers, ${reads} reads`);
    assert.ok(median < 150 && almostAll < 1_000, `median ${median} ms, 99 % within ${almostAll} ms`);
    // Generous, for a machine with much else to do; who is held up by a plugin waits for many seconds.
    assert.ok(
      slowest < 5_000 && longestPauseMs > 0 && longestPauseMs < 5_000,
      `${slowest}, ${longestPauseMs} ms`,
    );
  });

  it('are gone with the daemon', async () => {
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
  });
});
