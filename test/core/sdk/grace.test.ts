import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { limited } from '../../../core/sdk/grace.ts';

const clockAndOptions = () => {
  const clock = createManualClock();
  const end = new AbortController();
  return { clock, end, options: { clock, limitMs: 100, graceMs: 50, end: end.signal } };
};

const untilTold = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

describe('work with a limit', () => {
  it('settles as the work does and leaves no timer, nor tells the work afterwards', async () => {
    const { clock, end, options } = clockAndOptions();
    let told: AbortSignal | undefined;
    assert.equal(
      await limited((signal) => {
        told = signal;
        return Promise.resolve(7);
      }, options),
      7,
    );
    await assert.rejects(
      limited(() => Promise.reject(new Error('no')), options),
      { message: 'no' },
    );
    assert.equal(clock.pending, 0);
    end.abort();
    await clock.advance(1_000);
    assert.equal(told?.aborted, false);
  });

  it('tells the work at the limit, by a TimeoutError', async () => {
    const { clock, options } = clockAndOptions();
    const work = assert.rejects(limited(untilTold, options), {
      name: 'TimeoutError',
      message: 'no answer within 100 ms',
    });
    await clock.advance(100);
    await work;
    assert.equal(clock.pending, 0);
  });

  it('gives up work that heeds nothing after the grace, once', async () => {
    const { clock, end, options } = clockAndOptions();
    let isSettled = false;
    const work = limited(() => new Promise<never>(() => undefined), options).finally(() => {
      isSettled = true;
    });
    const refused = assert.rejects(work, { name: 'TimeoutError' });
    await clock.advance(100);
    end.abort(new Error('too late to matter'));
    await clock.advance(49);
    assert.equal(isSettled, false);
    await clock.advance(1);
    await refused;
    assert.equal(clock.pending, 0);
  });

  it('tells the work when the end has come, before or meanwhile', async () => {
    const { clock, end, options } = clockAndOptions();
    const work = assert.rejects(limited(untilTold, options), { message: 'over' });
    end.abort(new Error('over'));
    await work;
    await assert.rejects(
      limited((signal) => Promise.reject(signal.reason as Error), options),
      { message: 'over' },
    );
    assert.equal(clock.pending, 0);
  });
});
