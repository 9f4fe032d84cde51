/** What counts as an answer from below a share, and what as none. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { pino } from 'pino';
import { Answers } from '../../../../../plugins/mount/layer/health/answers.ts';

type Touch = 'answers' | 'fails' | 'hangs';

describe('what lies below a share', () => {
  const below = (): {
    answers: Answers;
    state: { bindfs: Touch; rclone: Touch; waiting: number; isHeld: boolean; looks: number };
  } => {
    const state = {
      bindfs: 'answers' as Touch,
      rclone: 'answers' as Touch,
      waiting: 0,
      isHeld: false,
      looks: 0,
    };
    const touch = (path: string): Promise<void> => {
      state.looks += 1;
      const how = path === '/place' ? state.rclone : state.bindfs;
      if (how === 'answers') return Promise.resolve();
      const name = how === 'hangs' ? 'TimeoutError' : 'Error';
      return Promise.reject(Object.assign(new Error('no'), { name }));
    };
    const rclone = { mountPoint: '/place', fsType: 'fuse', source: '', deviceMinor: 7, readOnly: true };
    const answers = new Answers({
      stack: { lower: '/lower', place: '/place' },
      mountReader: { touch, waiting: () => Promise.resolve(state.waiting) },
      mountTable: { find: () => Promise.resolve(rclone) },
      isHeld: () => state.isHeld,
      log: pino({ level: 'silent' }),
    });
    return { answers, state };
  };
  const look = async (answers: Answers, times: number): Promise<boolean> => {
    for (let time = 0; time < times; time += 1) await answers.look();
    return answers.problem !== undefined;
  };

  it('hangs after two looks without an answer, until there is one', async () => {
    const { answers, state } = below();
    state.bindfs = 'hangs';
    assert.equal(await look(answers, 1), false);
    assert.equal(await look(answers, 1), true);
    await assert.rejects(answers.checkBindfs(1), { name: 'TimeoutError' });
    state.bindfs = 'fails';
    assert.equal(await look(answers, 1), false);
    await answers.checkBindfs(1);
  });

  it('hangs with an rclone that does, whoever waits in it', async () => {
    const { answers, state } = below();
    Object.assign(state, { bindfs: 'hangs', rclone: 'hangs', waiting: 3 });
    assert.equal(await look(answers, 2), true);
  });

  it('does not hang where calls in rclone wait for the NAS', async () => {
    const { answers, state } = below();
    Object.assign(state, { bindfs: 'hangs', waiting: 10 });
    assert.equal(await look(answers, 5), false);
    await answers.checkBindfs(1);
  });

  it('is not looked at while calls are held on purpose', async () => {
    const { answers, state } = below();
    Object.assign(state, { bindfs: 'hangs', isHeld: true });
    assert.equal(await look(answers, 5), false);
    assert.equal(state.looks, 0);
  });

  it('is looked at every 10 s, a second after a look without an answer, and no more in the end', async () => {
    const { answers, state } = below();
    const clock = createManualClock();
    const end = new AbortController();
    const run = answers.run(clock, end.signal);
    await clock.advance(10_000);
    assert.equal(state.looks, 1);
    state.bindfs = 'hangs';
    await clock.advance(10_000);
    assert.equal(answers.problem, undefined);
    await clock.advance(1_000);
    assert.match(answers.problem ?? '', /does not answer/);
    end.abort();
    await run;
  });
});
