/** What the drawings of a plugin may take of the daemon's time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DrawingTime } from '../../../../../core/plugins/runner/carried/drawing-time.ts';

describe("the time for a plugin's drawings", () => {
  it('is so much for one, and so much for all within ten seconds', () => {
    let nowMs = 0;
    const time = new DrawingTime({ monotonic: () => nowMs });
    const slow = (): void =>
      time.spend((check) => {
        for (;;) check();
      });
    for (let one = 0; one < 10; one += 1) assert.throws(slow, /more than 100 ms to put together/);
    assert.throws(() => time.spend(() => 'drawn'), /took more than 1 s of the last 10 s/);
    nowMs = 10_000;
    assert.equal(
      time.spend((check) => {
        check();
        return 'drawn';
      }),
      'drawn',
    );
  });
});
