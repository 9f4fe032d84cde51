import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { Hold, isStopped as isSeenStopped } from '../../../../../plugins/mount/layer/bindfs/hold.ts';
import { sleep, until } from '../../../../support/platform/wait.ts';

/** A guard of a former test may end late. */
function signalIfAlive(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended with its test.
  }
}

describe('calls below a share while rclone is replaced', () => {
  let bindfs: ChildProcess;
  let pid: number;
  beforeEach(() => {
    bindfs = spawn('sleep', ['60'], { stdio: 'ignore' });
    pid = bindfs.pid!;
  });
  afterEach(() => bindfs.kill('SIGKILL'));

  const holdOf = (adopted = false): Hold => {
    const of = pid;
    return new Hold({
      shareName: 's',
      bindfs: { pid: of, signal: (name) => signalIfAlive(of, name) },
      adopted,
      log: pino({ level: 'silent' }),
    });
  };
  const isStopped = (): boolean => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
  };
  const waits = (): Promise<unknown> => until('they wait', isStopped, { timeoutMs: 10_000, everyMs: 5 });
  const goOn = (): Promise<unknown> =>
    until('they go on', () => !isStopped(), { timeoutMs: 10_000, everyMs: 5 });

  it('wait until it is there, as often as it is replaced', async () => {
    const hold = holdOf();
    for (let time = 0; time < 2; time += 1) {
      hold.begin();
      await waits();
      assert.deepEqual([hold.isBegun, isSeenStopped(pid)], [true, true]);
      hold.end();
      await goOn();
      assert.deepEqual([hold.isBegun, isSeenStopped(pid)], [false, false]);
    }
  });

  it('wait for a moment only, though nobody ends it', async () => {
    holdOf().begin();
    await waits();
    await goOn();
  });

  it('go on when the guard that would end it is killed', async () => {
    const hold = holdOf();
    hold.begin();
    await waits();
    const guards = execFileSync('pgrep', ['-f', `kill -CONT.* ${pid}$`], { encoding: 'utf8' }).trim();
    for (const guard of guards.split('\n')) process.kill(Number(guard), 'SIGKILL');
    await goOn();
    await until('it has ended', () => !hold.isBegun, { timeoutMs: 1_000, everyMs: 5 });
    hold.begin();
    await waits();
    hold.end();
    await goOn();
  });

  it('wait for the last of several changes, and for none once their marks are renewed', async () => {
    const hold = holdOf();
    const ends = [hold.callsForOne(), hold.callsForOne()];
    await waits();
    ends[0]!();
    assert.deepEqual([hold.isBegun, isStopped()], [true, true]);
    ends[1]!();
    await goOn();
    const failed = hold.callsForOne();
    hold.callsForOne();
    await waits();
    hold.calls()();
    await goOn();
    failed();
    assert.equal(hold.isBegun, false);
  });

  it('wait for another rclone, whatever change ends meanwhile', async () => {
    const hold = holdOf();
    hold.begin();
    hold.calls()();
    hold.callsForOne()();
    await waits();
    assert.equal(hold.isBegun, true);
    hold.end();
    await goOn();
  });

  it('go on when the share is taken down, and wait no more', async () => {
    const hold = holdOf();
    hold.begin();
    await waits();
    hold.close();
    await goOn();
    hold.begin();
    await sleep(50);
    assert.equal(isStopped(), false);
  });

  it('go on with the next daemon', async () => {
    bindfs.kill('SIGSTOP');
    await waits();
    holdOf(true);
    await goOn();
  });
});
