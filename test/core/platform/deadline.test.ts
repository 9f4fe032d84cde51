import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import {
  endsWithin,
  limited,
  TimeBoxError,
  timeBox,
  timeBoxOr,
  unlessAborted,
} from '../../../core/platform/deadline.ts';

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

describe('work that is left behind when it is late', () => {
  const never = (): Promise<never> => new Promise(() => undefined);

  it('settles as the work does in time, and takes its timer back', async () => {
    const clock = createManualClock();
    assert.equal(await timeBox(clock, 100, Promise.resolve(7)), 7);
    await assert.rejects(timeBox(clock, 100, Promise.reject(new Error('no'))), { message: 'no' });
    assert.equal(await timeBoxOr(clock, 100, Promise.resolve(7), () => assert.fail('called too early')), 7);
    assert.equal(await endsWithin(clock, 100, Promise.resolve()), true);
    await assert.rejects(endsWithin(clock, 100, Promise.reject(new Error('no'))), { message: 'no' });
    assert.equal(clock.pending, 0);
  });

  it('says that it is late at its time and not before', async () => {
    const clock = createManualClock();
    const heard: string[] = [];
    const note = (what: string) => (): void => void heard.push(what);
    const late = timeBox(clock, 100, never());
    void late.catch(note('late'));
    void timeBoxOr(clock, 100, never(), () => 'instead').then((given) => heard.push(given));
    void endsWithin(clock, 100, never()).then((isDone) => heard.push(String(isDone)));
    await clock.advance(99);
    assert.deepEqual(heard, []);
    await clock.advance(1);
    assert.deepEqual(new Set(heard), new Set(['false', 'instead', 'late']));
    await assert.rejects(
      late,
      (error) => error instanceof TimeBoxError && /within 0.1 s/.test(error.message),
    );
    const refused = timeBoxOr(clock, 1, never(), () => {
      throw new Error('own words');
    });
    const seen = assert.rejects(refused, { message: 'own words' });
    await clock.advance(1);
    await seen;
  });

  it('hears a failure that comes later without a word', async () => {
    const clock = createManualClock();
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', onUnhandled);
    const failing: ((error: Error) => void)[] = [];
    const fails = (): Promise<never> => new Promise((_, reject) => failing.push(reject));
    const over = AbortSignal.abort(new Error('over'));
    const outcomes = Promise.allSettled([
      timeBox(clock, 1, fails()),
      endsWithin(clock, 1, fails()),
      unlessAborted(over, fails()),
    ]);
    await clock.advance(1);
    assert.deepEqual(
      (await outcomes).map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected'],
    );
    for (const fail of failing) fail(new Error('too late'));
    await clock.advance(1);
    process.off('unhandledRejection', onUnhandled);
    assert.deepEqual(unhandled, []);
  });

  it('is left behind at the abort of a signal, whose listener is taken back', async () => {
    const end = new AbortController();
    assert.equal(await unlessAborted(end.signal, Promise.resolve(7)), 7);
    assert.equal(getEventListeners(end.signal, 'abort').length, 0);
    const left = assert.rejects(unlessAborted(end.signal, never()), { message: 'over' });
    end.abort(new Error('over'));
    await left;
    await assert.rejects(unlessAborted(end.signal, Promise.resolve(7)), { message: 'over' });
  });
});
