/** For how long what has just been changed is left alone, and when that ends. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changeTimes, nanoseconds } from '../../../../plugins/uploads/transfer/change-times.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const OPTIONS = { nowMs: NOW, writeBackMs: HOUR, restMs: 60_000, isHurried: false };

describe('a change', () => {
  const quietAt = (changedMs: number, more: object = {}): number | undefined =>
    changeTimes({ ...OPTIONS, ...more }).quietAt(nanoseconds(changedMs), 'a');

  it('waits until nobody has changed it for as long as the share says, and tells when that is', () => {
    const changed = NOW - 13 * 60_000;
    assert.equal(quietAt(changed), changed + HOUR);
    assert.equal(quietAt(NOW - HOUR), undefined);
    assert.equal(quietAt(NOW, { writeBackMs: 0 }), undefined);
  });

  it('waits for nothing where it is to go at once, or its time is one to come', () => {
    assert.equal(quietAt(NOW, { isHurried: true }), undefined);
    assert.equal(quietAt(NOW, { isUrgent: (path: string) => path === 'a' }), undefined);
    assert.equal(quietAt(NOW + HOUR), undefined);
    assert.equal(quietAt(NOW + 1_000), NOW + 1_000 + HOUR);
  });
});
