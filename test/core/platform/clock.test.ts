import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { createClock } from '../../../core/platform/clock.ts';

const clock = createClock();

describe('clock', () => {
  it('sleeps for the time asked for', async () => {
    const start = clock.monotonic();
    await clock.sleep(30);
    const slept = clock.monotonic() - start;
    assert.ok(slept >= 28 && slept < 20_000, `${slept}`);
  });

  it('wakes with the reason of the signal', async () => {
    const controller = new AbortController();
    const sleeping = clock.sleep(60_000, controller.signal);
    controller.abort(new Error('enough'));
    await assert.rejects(sleeping, /enough/);
    await assert.rejects(clock.sleep(60_000, controller.signal), /enough/);
  });

  it('leaves no listener on a signal that outlives the sleep or the deadline', async () => {
    const controller = new AbortController();
    await clock.sleep(1, controller.signal);
    const deadline = clock.deadline(5, controller.signal);
    await assert.rejects(clock.sleep(60_000, deadline), { name: 'TimeoutError' });
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  });

  it('does not run what was cancelled', async () => {
    let ran = 0;
    clock.after(5, () => (ran += 1))();
    clock.after(5, () => (ran += 10));
    await clock.sleep(40);
    assert.equal(ran, 10);
  });

  it('waits rather than fires at once when the time is beyond what a timer holds', async () => {
    let ran = false;
    const cancel = clock.after(60 * 24 * 3_600_000, () => (ran = true));
    await clock.sleep(20);
    cancel();
    assert.equal(ran, false);
  });

  it("aborts with the parent's reason when that comes first, also when it came before", () => {
    const parent = new AbortController();
    const signal = clock.deadline(60_000, parent.signal);
    assert.equal(signal.aborted, false);
    parent.abort(new Error('stopped'));
    assert.equal((signal.reason as Error).message, 'stopped');
    assert.equal((clock.deadline(60_000, parent.signal).reason as Error).message, 'stopped');
  });
});
