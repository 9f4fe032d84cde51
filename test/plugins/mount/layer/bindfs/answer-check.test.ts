import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AnswerCheck } from '../../../../../plugins/mount/layer/bindfs/answer-check.ts';
import { createManualClock } from '../../../../../core/testing/manual-clock.ts';
import { timeoutError } from '../../../../../core/platform/timeout-error.ts';

function bench() {
  const clock = createManualClock();
  const asked: string[] = [];
  let answer: () => Promise<void> = () => Promise.resolve();
  const check = new AnswerCheck({
    lower: '/lower',
    clock,
    mountReader: {
      touch: (path) => {
        asked.push(path);
        return answer();
      },
    },
  });
  return { asked, check, clock, answers: (next: () => Promise<void>) => (answer = next) };
}
const hangs = (): Promise<void> => Promise.reject(timeoutError('no answer'));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the question whether bindfs answers', () => {
  it('is put every ten seconds while figures are asked for', async () => {
    const { asked, check, clock } = bench();
    check.assure();
    await clock.advance(9_999);
    check.assure();
    assert.deepEqual(asked, []);
    await clock.advance(1);
    check.assure();
    check.assure();
    assert.deepEqual(asked, ['/lower']);
  });

  it('fails the figures once it had no answer, until it has one again', async () => {
    const { check, clock, answers } = bench();
    answers(hangs);
    await clock.advance(10_000);
    check.assure();
    await turn();
    assert.throws(() => check.assure(), /bindfs below the share does not answer/);
    answers(() => Promise.resolve());
    await turn();
    assert.throws(() => check.assure(), 'by what was known');
    await turn();
    check.assure();
  });

  it('takes an error for an answer: there may be no rclone just now', async () => {
    const { check, answers } = bench();
    answers(() => Promise.reject(new Error('Input/output error')));
    await check.ask(1_000);
    check.assure();
    answers(hangs);
    await assert.rejects(check.ask(1_000), { name: 'TimeoutError' });
    assert.throws(() => check.assure());
  });
});
