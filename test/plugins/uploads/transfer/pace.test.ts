/** How long the uploader rests between two looks at an upper folder. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { freshMs, restMs } from '../../../../plugins/uploads/transfer/pace.ts';

const WAITING = { isDue: false, isIdle: false };

describe('the pause between two looks at an upper folder', () => {
  it('is one second while a few files wait, also where a look takes nearly as long on a busy machine', () => {
    for (const tookMs of [5, 200, 900]) assert.equal(restMs({ entries: 50, tookMs }, WAITING), 1_000);
  });

  it('grows with the number of entries, and ends at ten seconds', () => {
    assert.equal(restMs({ entries: 4_000, tookMs: 80 }, WAITING), 5_000);
    assert.equal(restMs({ entries: 1_000_000, tookMs: 20_000 }, WAITING), 10_000);
    assert.equal(freshMs({ entries: 4_000, tookMs: 80 }), 5_000);
  });

  it('is as long as a look where that takes long', () => {
    assert.equal(restMs({ entries: 50, tookMs: 3_000 }, WAITING), 3_000);
  });

  it('is longer while nothing waits, and short where something is there for a look', () => {
    assert.equal(restMs({ entries: 50, tookMs: 5 }, { isDue: false, isIdle: true }), 5_000);
    assert.equal(restMs({ entries: 8, tookMs: 5 }, { isDue: true, isIdle: true }), 10);
  });
});
