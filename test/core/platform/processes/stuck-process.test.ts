import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import type { Clock } from '../../../../core/contract/platform.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until, within } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { CAN_HANG_A_MOUNT, mountOfSilence } from '../../../support/platform/hung-mount.ts';
import { SKIPS } from '../../../runner/skips.ts';

const real = createClock();
/** Ten times as fast, so that the test need not wait as long as the daemon does. */
const clock: Clock = {
  ...real,
  monotonic: () => real.monotonic() * 10,
  sleep: (ms, signal) => real.sleep(ms / 10, signal),
  after: (ms, fn, options) => real.after(ms / 10, fn, options),
};

describe(
  'a process that is stuck in the kernel',
  { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason },
  () => {
    let scratch: Scratch;
    before(async () => {
      scratch = await createScratch('stuck');
    });
    after(() => scratch.close());

    it('does not hold up its stop, keeps its key while it lives, and is collected once it is freed', async () => {
      const mount = await mountOfSilence(scratch);
      const { log, messages } = collectLog();
      const processes = createProcesses({ stateDir: scratch.path('state'), clock, log });
      const spec = { key: 'stuck', command: 'ls', args: [mount.mountPoint], fingerprint: 'f' };
      const managed = await processes.start(spec);
      await until(
        'it waits for the mount',
        async () =>
          mount.isAsked() && (await readFile(`/proc/${managed.pid}/wchan`, 'latin1')).includes('wait_answer'),
        { timeoutMs: 20_000 },
      );

      const exit = await within('stop', 20_000, managed.stop({ graceMs: 200 }));
      assert.deepEqual([exit.code, exit.signal], [null, null]);
      assert.ok(managed.isAlive());
      assert.equal(managed.state(), 'D');
      assert.ok(
        messages().includes('process does not end although it was killed; it is stuck in the kernel'),
      );
      await assert.rejects(processes.start(spec), /is still running for stuck/);

      await mount.end();
      assert.notEqual((await within('exit', 20_000, managed.exited)).signal, null);
      assert.deepEqual(await processes.recorded(''), []);
    });
  },
);
