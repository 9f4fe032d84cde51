import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CallDeadline } from '../../core/call-deadline.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';

interface Bench { readonly clock: ManualClock; readonly end: AbortController; readonly deadline: CallDeadline }

function bench(): Bench {
  const clock = createManualClock();
  const end = new AbortController();
  return { clock, end, deadline: new CallDeadline({ clock, end: end.signal, timeoutMs: 100, graceMs: 50 }) };
}

/** A call that obeys its signal. */
function obedient(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
}

describe('deadline of repeated calls', () => {
  it('gives what the call gives, and leaves no timer behind', async () => {
    const { clock, deadline } = bench();
    assert.equal(await deadline.run(async () => 7), 7);
    await assert.rejects(deadline.run(async () => Promise.reject(new Error('no'))), /no/);
    assert.equal(clock.pending, 0);
  });

  it('ends a call that is late by its signal, and the next call gets a fresh one', async () => {
    const { clock, deadline } = bench();
    const late = assert.rejects(deadline.run(obedient), { name: 'TimeoutError' });
    await clock.advance(100);
    await late;
    assert.equal(await deadline.run(async (signal) => signal.aborted), false);
  });

  it('gives up a call that does not obey, after its grace', async () => {
    const { clock, deadline } = bench();
    let isOver = false;
    const call = deadline.run(() => new Promise<never>(() => undefined)).catch((error: Error) => {
      isOver = true;
      return error.name;
    });
    await clock.advance(149);
    assert.equal(isOver, false);
    await clock.advance(1);
    assert.equal(await call, 'TimeoutError');
  });

  it('passes the end on to the call in progress and to every later one', async () => {
    const { deadline, end } = bench();
    const call = assert.rejects(deadline.run(obedient), /over/);
    end.abort(new Error('over'));
    await call;
    assert.equal(await deadline.run(async (signal) => signal.aborted), true);
  });

  it('does not use one signal for ever', async () => {
    const { deadline } = bench();
    const signals = new Set<AbortSignal>();
    for (let call = 0; call < 200; call += 1) await deadline.run(async (signal) => signals.add(signal));
    assert.ok(signals.size >= 2 && signals.size <= 10, String(signals.size));
  });
});
