import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createKeyedQueue, createSerialQueue } from '../../../core/platform/serial-queue.ts';

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

describe('a queue with keys', () => {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('lets in one at a time of each key, in order, and does not hold up other keys', async () => {
    const queue = createKeyedQueue();
    const seen: string[] = [];
    const leave = await queue.enter('a');
    const second = queue.enter('a').then((end) => {
      seen.push('second');
      return end;
    });
    const third = queue.run('a', () => void seen.push('third'));
    await queue.run('b', () => void seen.push('other'));
    await turn();
    assert.deepEqual(seen, ['other']);
    leave();
    const end = await second;
    await turn();
    assert.deepEqual(seen, ['other', 'second']);
    end();
    await third;
    assert.deepEqual(seen, ['other', 'second', 'third']);
  });

  it('goes on after work that failed, which its own caller alone hears of', async () => {
    const queue = createKeyedQueue();
    const failing = queue.run('a', () => Promise.reject(new Error('no room')));
    const next = queue.run('a', () => 'done');
    await assert.rejects(failing, /no room/);
    assert.equal(await next, 'done');
  });
});
