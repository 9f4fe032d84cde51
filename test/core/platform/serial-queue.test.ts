import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSerialQueue } from '../../../core/platform/serial-queue.ts';

describe('a serial queue', () => {
  it('does one piece of work after the other, in the order in which they came', async () => {
    const queue = createSerialQueue();
    const seen: string[] = [];
    const work = (name: string) => async () => {
      seen.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${name} ends`);
      return name;
    };
    assert.deepEqual(await Promise.all([queue.run(work('a')), queue.run(work('b'))]), ['a', 'b']);
    assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends']);
  });

  it('tells a failure to its own caller alone, and goes on', async () => {
    const queue = createSerialQueue();
    const failing = queue.run(() => {
      throw new Error('no room');
    });
    const next = queue.run(() => 'done');
    await assert.rejects(failing, /no room/);
    assert.equal(await next, 'done');
  });
});
