import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MessageLimit } from '../../../../../core/plugins/runner/process/message-limit.ts';
import { createManualClock } from '../../../../../core/testing/manual-clock.ts';

const MIB = 1_048_576;

/** After how many turns of `everyMs` it is too much, with the sentence; undefined within ten minutes. */
async function tooMuch(
  everyMs: number,
  turn: (limit: MessageLimit) => void,
): Promise<readonly [times: number, reason: string] | undefined> {
  const clock = createManualClock();
  const limit = new MessageLimit(clock);
  for (let times = 1; times * everyMs < 600_000; times += 1) {
    try {
      turn(limit);
    } catch (error) {
      return [times, (error as Error).message];
    }
    await clock.advance(everyMs);
  }
  return undefined;
}

describe('what a runner says', () => {
  it('may be much for a moment, and no more than that', async () => {
    assert.equal(await tooMuch(60_000, (limit) => limit.take(8 * MIB, [{}])), undefined);
    assert.deepEqual(await tooMuch(60_000, (limit) => limit.take(8 * MIB + 1, [{}])), [
      1,
      'it sent more than the daemon can take',
    ]);
    const messages = Array.from({ length: 2_001 }, () => ({}));
    assert.equal((await tooMuch(60_000, (limit) => limit.take(1, messages)))?.[0], 1);
    assert.equal(await tooMuch(60_000, (limit) => limit.take(1, messages.slice(1))), undefined);
  });

  it('may not go on for ever just below that', async () => {
    const sentence = 'it sent more within a minute than the daemon can take';
    assert.deepEqual(await tooMuch(1_000, (limit) => limit.take(7.9 * MIB, [{}])), [5, sentence]);
    const messages = Array.from({ length: 1_900 }, () => ({}));
    assert.deepEqual(await tooMuch(1_000, (limit) => limit.take(100, messages)), [16, sentence]);
    assert.equal(await tooMuch(1_000, (limit) => limit.take(MIB / 2, messages.slice(0, 500))), undefined);
  });

  it('counts as little where it is the one long text of an answer to a request', async () => {
    const answers = ['x'.repeat(MIB)].map((body) => ({ is: 'answer', id: 1, value: { status: 200, body } }));
    assert.equal(await tooMuch(1_000, (limit) => limit.take(MIB + 100, answers)), undefined);
  });
});
