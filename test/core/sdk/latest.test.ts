import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLatestQueue } from '../../../core/sdk/latest.js';

describe('latest queue', () => {
  it('runs one at a time and makes one of a burst, with the latest input', async () => {
    const taken: number[] = [];
    let running = 0;
    const queue = createLatestQueue<number>(async (input) => {
      running += 1;
      assert.equal(running, 1);
      taken.push(input);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      running -= 1;
    });
    await Promise.all([1, 2, 3, 4, 5].map((input) => queue.push(input)));
    assert.deepEqual(taken, [1, 5]);
    await queue.push(6);
    assert.deepEqual(taken, [1, 5, 6]);
  });

  it('never runs an older input after a newer one, whenever pushes come', async () => {
    const taken: number[] = [];
    const queue = createLatestQueue<number>(async (input) => {
      taken.push(input);
      await Promise.resolve();
    });
    const pushes: Promise<void>[] = [];
    for (let input = 0; input < 200; input += 1) {
      pushes.push(queue.push(input));
      for (let turn = 0; turn < input % 7; turn += 1) await Promise.resolve();
    }
    await Promise.all(pushes);
    assert.deepEqual(
      taken,
      taken.toSorted((a, b) => a - b),
    );
    assert.equal(taken.at(-1), 199);
  });

  it('goes on after a run that failed, whose callers alone hear of it', async () => {
    const queue = createLatestQueue<string>(async (input) => {
      if (input === 'bad') throw new Error(input);
    });
    const bad = queue.push('bad');
    const good = queue.push('good');
    await assert.rejects(bad, /bad/);
    await good;
    await queue.idle();
  });
});
