import assert from 'node:assert/strict';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, opendirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { isBetweenCalls } from '../../../../../plugins/mount/layer/bindfs/between-calls.ts';
import { unlessRoot } from '../../../../runner/skips.ts';
import { isMounted } from '../../../../support/platform/mounted-file-systems.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';

/** bindfs, and one below it that is stopped: it is asked, and waits for an answer. */
describe('a bindfs that is stopped', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let below: ChildProcess;
  let above: ChildProcess;
  const mirror = async (source: string, place: string): Promise<ChildProcess> => {
    mkdirSync(place);
    const bindfs = spawn('bindfs', ['-f', '--multithreaded', '-o', 'attr_timeout=0', source, place], {
      stdio: 'ignore',
    });
    scratch.defer(() => void bindfs.kill('SIGKILL'));
    await until('bindfs is mounted', () => isMounted(place), { timeoutMs: 10_000 });
    scratch.defer(() => once(spawn('umount', ['-l', place], { stdio: 'ignore' }), 'close'));
    return bindfs;
  };
  before(async () => {
    scratch = await createScratch('between-calls');
    mkdirSync(scratch.path('files'));
    below = await mirror(scratch.path('files'), scratch.path('below'));
    above = await mirror(scratch.path('below'), scratch.path('above'));
    opendirSync(scratch.path('above')).closeSync();
  });
  after(() => scratch.close());

  it('is between calls when all that it was asked is answered, and not while it waits for an answer', async () => {
    // The kernel tells it of a closed folder after `closedir` has returned.
    await until('all is answered', () => isBetweenCalls(above.pid!), { timeoutMs: 10_000 });
    above.kill('SIGSTOP');
    // A thread that is being stopped runs for a moment.
    await until('it is between calls', () => isBetweenCalls(above.pid!), { timeoutMs: 10_000 });
    above.kill('SIGCONT');
    below.kill('SIGSTOP');
    const asking = spawn('ls', [scratch.path('above')], { stdio: 'ignore' });
    // One thread may just be waking up: that is over at the next look.
    let looks = 0;
    const isWaiting = (): boolean => (looks = isBetweenCalls(above.pid!) ? 0 : looks + 1) > 3;
    await until('it waits for an answer', isWaiting, { timeoutMs: 10_000 });
    above.kill('SIGSTOP');
    assert.equal(isBetweenCalls(above.pid!), false);
    above.kill('SIGCONT');
    below.kill('SIGCONT');
    await until('it is answered', () => asking.exitCode !== null && isBetweenCalls(above.pid!), {
      timeoutMs: 10_000,
    });
  });

  it('that has ended has begun nothing', () => assert.equal(isBetweenCalls(2 ** 22 + 1), true));
});
