import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { waitingNow } from '../../../../plugins/uploads/proof/whole-look.ts';

const WAITS = { path: 'a', spots: ['a'], reason: 'It waits.' };

describe('what waits, for a proof', () => {
  const ask = (looks: readonly boolean[], signal = new AbortController().signal) => {
    let count = 0;
    const asked = waitingNow({
      clock: { sleep: () => Promise.resolve() },
      signal,
      look: async () => looks[count++] ?? false,
      waiting: () => [{ ...WAITS, reason: `after ${count}` }],
      unrestored: () => new Set(['lost']),
    });
    return { asked, counted: () => count };
  };

  it('is told by the first look that has seen everything, with what is not back in its place', async () => {
    const { asked } = ask([false, false, true]);
    const waiting = await asked;
    assert.deepEqual(
      waiting.map(({ path, spots }) => [path, spots]),
      [
        ['a', ['a']],
        ['lost', ['lost']],
      ],
    );
    assert.equal(waiting[0]?.reason, 'after 3');
  });

  it('is not told where every look may have missed something, nor to who has gone', async () => {
    const { asked, counted } = ask([]);
    await assert.rejects(asked, /cannot be told/);
    assert.equal(counted(), 40);
    await assert.rejects(ask([false], AbortSignal.abort()).asked, { name: 'AbortError' });
  });
});
