import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PENDING, nextState, probeBackoffMs, remountBackoffMs } from '../../../core/shares/state-machine.js';
import type { ShareEvent, ShareState } from '../../../core/shares/state-machine.js';

const pending: ShareState = PENDING;
const probing: ShareState = { health: 'probing' };
const healthy: ShareState = { health: 'healthy' };
const failed: ShareState = { health: 'failed', reason: 'gone' };

const reset: ShareEvent = { kind: 'reset' };
const probe: ShareEvent = { kind: 'probe' };
const mounted: ShareEvent = { kind: 'mounted' };
const unreadable: ShareEvent = { kind: 'unreadable' };
const fail: ShareEvent = { kind: 'fail', reason: 'no route' };

const TABLE: readonly (readonly [ShareState, ShareEvent, string])[] = [
  [pending, reset, 'pending'],
  [pending, probe, 'probing'],
  [pending, mounted, 'healthy'],
  [pending, unreadable, 'probing'],
  [pending, fail, 'failed'],
  [probing, reset, 'pending'],
  [probing, probe, 'refused'],
  [probing, mounted, 'healthy'],
  [probing, unreadable, 'probing'],
  [probing, fail, 'failed'],
  [healthy, reset, 'pending'],
  [healthy, probe, 'refused'],
  [healthy, mounted, 'refused'],
  [healthy, unreadable, 'probing'],
  [healthy, fail, 'failed'],
  [failed, reset, 'pending'],
  [failed, probe, 'probing'],
  [failed, mounted, 'refused'],
  [failed, unreadable, 'refused'],
  [failed, fail, 'failed'],
];

describe('share state machine', () => {
  for (const [state, event, expected] of TABLE) {
    it(`${state.health} + ${event.kind}: ${expected}`, () => {
      if (expected === 'refused') assert.throws(() => nextState(state, event), /cannot follow/);
      else assert.equal(nextState(state, event).health, expected);
    });
  }

  it('keeps the newest reason', () => {
    assert.deepEqual(nextState(failed, fail), { health: 'failed', reason: 'no route' });
  });

  it('backs off from 5 s to 60 s, spread by a fifth', () => {
    const middle = [1, 2, 3, 4, 5, 50].map((attempt) => probeBackoffMs(attempt, () => 0.5));
    assert.deepEqual(middle, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    assert.equal(
      probeBackoffMs(1, () => 0),
      4_000,
    );
    assert.ok(Math.abs(probeBackoffMs(5, () => 1) - 72_000) < 1);
  });

  it('mounts again at once after the first early death, then within 1 s, then more rarely', () => {
    assert.deepEqual(
      [0, 1, 2, 3, 4, 6, 60, 61, 500].map(remountBackoffMs),
      [0, 0, 250, 500, 1_000, 1_000, 1_000, 5_000, 5_000],
    );
  });
});
