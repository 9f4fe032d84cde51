import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createQueuedNames } from '../../../plugins/mount/queued-names.ts';

const never = new AbortController().signal;

describe('names of what waits to go up', () => {
  const calls: string[] = [];
  let queue: { id: number; name: string }[] | null = [];
  const namesOf = (...known: string[]) => createQueuedNames({
    fs: 'nas:', calls: async () => new Set(known),
    rc: { call: async <T>(path: string) => { calls.push(path); return { queue } as T; }, close: () => undefined },
  });

  it('are told once each', async () => {
    const names = namesOf('vfs/queue');
    queue = [{ id: 1, name: 'a' }, { id: 2, name: 'b' }];
    assert.deepEqual(await names(2, never), ['a', 'b']);
    queue = [{ id: 2, name: 'b' }, { id: 3, name: 'c' }];
    assert.deepEqual(await names(2, never), ['c']);
    queue = null;
    assert.deepEqual(await names(1, never), []);
  });

  it('are not asked for when nothing waits or too much, nor of an rclone that does not tell', async () => {
    calls.length = 0;
    assert.deepEqual([await namesOf('vfs/queue')(0, never), await namesOf('vfs/queue')(1_000, never), await namesOf()(1, never)], [[], [], []]);
    assert.deepEqual(calls, []);
  });
});
