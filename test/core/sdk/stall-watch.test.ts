import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { placeIn } from '../../../core/plugins/instance/ledger.js';
import { StallWatch } from '../../../core/sdk/stall-watch.js';
import { collectLog } from '../../support/platform/collected-log.ts';

/** A loop of which the test says what it did. */
function fixture() {
  const times = { idleMs: 0, queuedMs: 0 };
  let nowMs = 0;
  let look: (() => void) | undefined;
  const clock = {
    monotonic: () => nowMs,
    after: (_: number, fn: () => void) => {
      look = fn;
      return () => {
        look = undefined;
      };
    },
  };
  const { log, entries } = collectLog();
  const stalls = new StallWatch({ clock, log });
  const end = stalls.watchLoop(clock, () => ({ ...times }));
  return {
    stalls,
    end,
    isLooking: () => look !== undefined,
    /** Nothing was logged before. */
    said: () =>
      entries
        .splice(0)
        .map(({ plugin, at, candidates, unnamed, ms }) => ({ plugin, at, candidates, unnamed, ms })),
    work: (ms: number) => {
      nowMs += ms;
    },
    /** Milliseconds until the loop is looked at, with what of them was none of its own. */
    pass: (ms: number, { idle = 0, queued = 0 } = {}) => {
      nowMs += ms;
      times.idleMs += idle;
      times.queuedMs += queued;
      const fn = look;
      look = undefined;
      fn?.();
    },
  };
}

const HOOK = { plugin: 'slow', at: 'hook afterMount' };
const ROUTE = { plugin: 'other', at: 'route GET /other' };
const named = (place: { readonly plugin: string; readonly at: string }, ms: number) => ({
  ...place,
  candidates: undefined,
  unnamed: undefined,
  ms,
});
const forever = (): Promise<never> => new Promise(() => undefined);

describe('what holds up the loop after an await', () => {
  it('is named, once a minute', () => {
    const { stalls, pass, said } = fixture();
    void stalls.call(HOOK, forever);
    pass(250, { idle: 40 });
    assert.deepEqual(said(), [named(HOOK, 210)]);
    pass(400);
    assert.deepEqual(said(), []);
    pass(60_000, { idle: 60_000 });
    pass(400);
    assert.deepEqual(said(), [named(HOOK, 400)]);
  });

  it('is nobody where the loop had nothing to do, or others had the processor', () => {
    const { stalls, pass, said } = fixture();
    void stalls.call(HOOK, forever);
    pass(5_000, { idle: 4_990 });
    pass(5_000, { queued: 4_900 });
    pass(5_000, { queued: 2_500, idle: 2_400 });
    assert.deepEqual(said(), []);
  });

  it('is named when its call has ended meanwhile; then nobody looks any more', async () => {
    const { stalls, pass, said, isLooking } = fixture();
    assert.ok(!isLooking(), 'an idle daemon is not woken');
    await assert.rejects(
      stalls.call(HOOK, () => Promise.reject(new Error('its own'))),
      /its own/,
    );
    await turn();
    pass(300);
    assert.deepEqual(said(), [named(HOOK, 300)]);
    assert.ok(!isLooking());
    assert.equal(await stalls.call(HOOK, async () => 'answer'), 'answer');
    assert.ok(isLooking());
  });

  it('is one of several where several were under way; of many some are named', () => {
    const { stalls, pass, said } = fixture();
    void stalls.call(HOOK, forever);
    void stalls.call(ROUTE, forever);
    void stalls.call(ROUTE, forever);
    pass(300);
    const both = ['slow hook afterMount', 'other route GET /other'];
    const several = { plugin: undefined, at: undefined, candidates: both, unnamed: undefined, ms: 300 };
    assert.deepEqual(said(), [several]);
    pass(300);
    assert.deepEqual(said(), [], 'once a minute');
    for (const at of ['a', 'b', 'c', 'd', 'e']) void stalls.call({ plugin: 'slow', at }, forever);
    pass(300);
    assert.deepEqual(said(), [
      { ...several, candidates: [...both, 'slow a', 'slow b', 'slow c'], unnamed: 2 },
    ]);
  });

  it('is not looked for in what was measured already', () => {
    const { stalls, pass, said, work } = fixture();
    void stalls.call(HOOK, forever);
    stalls.call(ROUTE, () => work(300));
    assert.deepEqual(said(), [named(ROUTE, 300)]);
    for (let count = 0; count < 4; count += 1) stalls.call(ROUTE, () => work(100));
    pass(190);
    assert.deepEqual(said(), []);
  });

  it('is no plugin whose work is done in a process of its own, none that hangs, and none after the end', () => {
    const { stalls, pass, said, isLooking, end } = fixture();
    const stranger = placeIn({ plugin: 'stranger', routePrefix: '/ext/stranger' }, 'hook afterCycle');
    void stalls.call(stranger, forever);
    assert.ok(!isLooking());
    void stalls.call(HOOK, forever);
    pass(601_000, { idle: 600_900 });
    assert.ok(!isLooking());
    void stalls.call(HOOK, forever);
    void end();
    assert.ok(!isLooking());
    void stalls.call(HOOK, forever);
    assert.ok(!isLooking());
    assert.deepEqual(said(), []);
  });
});

describe('a call within another', () => {
  it('is named alone, where the time is its own', () => {
    const { stalls, said, work } = fixture();
    stalls.call(ROUTE, () => {
      work(150);
      stalls.call(HOOK, () => work(300));
    });
    assert.deepEqual(said(), [named(HOOK, 300)]);
  });
});
