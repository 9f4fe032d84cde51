import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MountEntry } from 'mountkeeper';
import { untilQuiet } from '../../../../../plugins/mount/layer/bindfs/quiet.ts';

describe('what a file system below a share was asked', () => {
  const mountTable = {
    find: (place: string) =>
      Promise.resolve(place === 'there' ? ({ deviceMinor: 7 } as MountEntry) : undefined),
  };
  const end = new AbortController();
  const clock = { deadline: () => end.signal };

  it('is waited for until all is answered', async () => {
    const counts = [2, 1, 0, 5];
    const asked: number[] = [];
    const waiting = (minor: number): Promise<number> => {
      asked.push(minor);
      return Promise.resolve(counts.shift() ?? 0);
    };
    await untilQuiet('there', { clock, mountTable, mountReader: { waiting } });
    assert.deepEqual([asked, counts], [[7, 7, 7], [5]]);
  });

  it('is not waited for where the kernel does not tell', () =>
    untilQuiet('there', {
      clock,
      mountTable,
      mountReader: { waiting: () => Promise.reject(new Error('no')) },
    }));

  it('is not waited for where nothing is mounted, nor for longer than the deadline', async () => {
    let asked = 0;
    const waiting = (): Promise<number> => {
      asked += 1;
      if (asked === 3) end.abort();
      return Promise.resolve(1);
    };
    await untilQuiet('elsewhere', { clock, mountTable, mountReader: { waiting } });
    assert.equal(asked, 0);
    await untilQuiet('there', { clock, mountTable, mountReader: { waiting } });
    assert.equal(asked, 3);
  });
});
