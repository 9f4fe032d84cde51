import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Throttle } from '../../../../core/sdk/http/password-throttle.ts';
import type { Verdict } from '../../../../core/sdk/http/password-throttle.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../../core/testing/manual-clock.ts';

const HERE = '10.0.0.1';

/** A throttle before one password, `right`. */
function bench() {
  const clock = createManualClock();
  const told: string[] = [];
  const looked: string[] = [];
  const throttle = new Throttle({
    clock,
    onWrong: (address, failures) => void told.push(`${address} ${failures}`),
  });
  const state = { isRight: (id: string): boolean => id.startsWith('right') };
  const examine = (id: string, address = HERE, signal = new AbortController().signal): Promise<Verdict> =>
    throttle.examine({
      address,
      id,
      signal,
      verify: () => {
        looked.push(id);
        return state.isRight(id);
      },
    });
  return { clock, throttle, examine, told, looked, state };
}

async function settled<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve('waiting' as const)]);
}

/** Lets time pass until all have an answer. */
async function finish(clock: ManualClock, work: Promise<unknown>): Promise<void> {
  while ((await settled(work)) === 'waiting') await clock.advance(250);
}

describe('the throttle', () => {
  it('looks at ten guesses of an address at once, then at four a second, and lets other addresses alone', async () => {
    const { clock, examine, looked } = bench();
    const guesses = Array.from({ length: 30 }, (_, index) => examine(`guess ${index}`));
    await settled(Promise.all(guesses));
    assert.equal(looked.length, 10);
    for (let second = 1; second <= 5; second += 1) {
      await clock.advance(1_000);
      assert.equal(looked.length, 10 + 4 * second);
    }
    assert.equal(await settled(examine('right', '10.0.0.2')), 'right');
    assert.deepEqual(
      looked.slice(0, 30),
      Array.from({ length: 30 }, (_, index) => `guess ${index}`),
      'in their order',
    );
    await finish(clock, Promise.all(guesses));
  });

  it('answers three wrong ones of an address at once, and then each three seconds late', async () => {
    const { clock, examine, told } = bench();
    for (const guess of ['a', 'b', 'c']) assert.equal(await settled(examine(guess)), 'wrong');
    const fourth = examine('d');
    await clock.advance(2_999);
    assert.equal(await settled(fourth), 'waiting');
    await clock.advance(1);
    assert.equal(await settled(fourth), 'wrong');
    assert.deepEqual(
      told,
      [1, 2, 3, 4].map((count) => `${HERE} ${count}`),
    );
    await clock.advance(11 * 60_000);
    assert.equal(await settled(examine('e')), 'wrong', 'forgotten after a while');
  });

  for (const [what, isKnown] of [
    ['known from before', true],
    ['never seen before', false],
  ] as const) {
    it(`answers twelve of twelve who are right, ${what}, within a second while eight guess from there`, async () => {
      const { clock, examine, looked } = bench();
      let isOver = false;
      if (isKnown) assert.equal(await examine('right 0'), 'right');
      const guessers = Array.from({ length: 8 }, async (_, who) => {
        for (let count = 0; !isOver; count += 1) await examine(`guess ${who} ${count}`);
      });
      for (let login = 0; login < 12; login += 1) {
        const verdict = examine(isKnown ? 'right 0' : `right ${login}`);
        await clock.advance(950);
        assert.equal(await settled(verdict), 'right', `login ${login}`);
        await clock.advance(180);
      }
      const guesses = looked.filter((id) => id.startsWith('guess')).length;
      assert.ok(guesses >= 24 && guesses <= 48, `${guesses} guesses in 14 s`);
      isOver = true;
      await finish(clock, Promise.all(guessers));
    });
  }

  it('knows who was right at that address alone, and looks again each time', async () => {
    const { clock, examine, state } = bench();
    assert.equal(await examine('right'), 'right');
    const guesses = Array.from({ length: 20 }, (_, index) => examine(`guess ${index}`));
    for (let count = 0; count < 100; count += 1) assert.equal(await settled(examine('right')), 'right');
    const elsewhere = Array.from({ length: 12 }, (_, index) => examine(`other ${index}`, '10.0.0.2'));
    assert.equal(await settled(examine('right', '10.0.0.2')), 'waiting');
    state.isRight = (id) => id === 'other';
    const late = examine('right');
    await finish(clock, Promise.all([...guesses, ...elsewhere, late]));
    assert.equal(await late, 'wrong');
  });

  it('lets nobody try faster by sending much: at last not even what is known is compared', async () => {
    const { clock, examine } = bench();
    assert.equal(await examine('right'), 'right');
    const flood = Array.from({ length: 60 }, (_, index) => examine(`guess ${index}`));
    const refused = examine('right');
    assert.equal(await settled(refused), 'waiting', 'else sixty guesses would be compared at once');
    await clock.advance(3_000);
    assert.equal(await settled(refused), 'too-many');
    assert.equal(await settled(examine('right')), 'right');
    await finish(clock, Promise.all(flood));
  });

  it('looks at fifty a second of all addresses together, after the first two hundred', async () => {
    const { clock, examine, looked } = bench();
    const far = (second: number) =>
      Array.from({ length: 400 }, (_, index) =>
        examine(`guess ${second} ${index}`, `10.${second}.${index >> 8}.${index & 255}`),
      );
    const all = far(1);
    await settled(Promise.all(all));
    assert.equal(looked.length, 200);
    await clock.advance(1_000);
    all.push(...far(2));
    await settled(Promise.all(all));
    assert.equal(looked.length, 250);
    await finish(clock, Promise.all(all));
  });

  it('looks at fewer of who never stops: some twelve thousand in a day', async () => {
    const { clock, examine, looked } = bench();
    const guess = async (from: number): Promise<void> => {
      const some = Array.from({ length: 30 }, (_, index) => examine(`guess ${from + index}`));
      await finish(clock, Promise.all(some));
    };
    for (let from = 0; from < 3_000; from += 30) await guess(from);
    const [since, before] = [clock.monotonic(), looked.length];
    for (let from = 3_000; from < 3_300; from += 30) await guess(from);
    const perSecond = ((looked.length - before) / (clock.monotonic() - since)) * 1_000;
    assert.ok(perSecond > 0.1 && perSecond < 0.15, `${perSecond} a second after ${looked.length}`);
  });

  it('answers the same credentials again without a pause, and many of them by one look', async () => {
    const { clock, examine, looked } = bench();
    assert.equal(await examine('stale'), 'wrong');
    for (let count = 0; count < 50; count += 1) assert.equal(await settled(examine('stale')), 'wrong');
    const guesses = Array.from({ length: 12 }, (_, index) => examine(`guess ${index}`));
    const same = Array.from({ length: 6 }, () => examine('right'));
    await clock.advance(1_500);
    assert.deepEqual(
      await settled(Promise.all(same)),
      Array.from({ length: 6 }, () => 'right'),
    );
    assert.equal(looked.filter((id) => id === 'stale').length, 1);
    assert.equal(looked.filter((id) => id === 'right').length, 1);
    await finish(clock, Promise.all(guesses));
  });

  it('looks again at what was wrong, once it may be right now', async () => {
    const { clock, throttle } = bench();
    let isRight = false;
    const signal = new AbortController().signal;
    const examine = (): Promise<Verdict> =>
      throttle.examine({ address: HERE, id: 'own', signal, wrongForMs: 30_000, verify: () => isRight });
    assert.equal(await examine(), 'wrong');
    isRight = true;
    await clock.advance(29_000);
    assert.equal(await examine(), 'wrong');
    await clock.advance(1_000);
    assert.equal(await examine(), 'right');
  });

  it('lets twenty-four of an address wait, half a minute at most, and no longer than they stay', async () => {
    const { clock, examine, looked } = bench();
    const first = Array.from({ length: 10 }, (_, index) => examine(`first ${index}`));
    const leaving = new AbortController();
    const left = examine('left', HERE, leaving.signal);
    leaving.abort();
    assert.equal(await settled(left), 'too-many');
    const oldest = examine('oldest');
    await clock.advance(0);
    const waiting = Array.from({ length: 24 }, (_, index) => examine(`guess ${index}`));
    await clock.advance(3_000);
    assert.equal(await settled(oldest), 'too-many', 'the oldest makes way');
    await finish(clock, Promise.all([...first, ...waiting]));
    assert.ok(!looked.includes('left') && !looked.includes('oldest'));
  });

  it('keeps nobody waiting once it is stopped', async () => {
    const { throttle, examine } = bench();
    const waiting = Array.from({ length: 20 }, (_, index) => examine(`guess ${index}`));
    assert.equal(await settled(Promise.all(waiting)), 'waiting');
    throttle.stop();
    assert.deepEqual([...new Set(await Promise.all(waiting))], ['wrong', 'too-many']);
    assert.equal(await examine('right'), 'too-many');
  });

  it('goes on after a look that failed', async () => {
    const { throttle, examine } = bench();
    const verify = (): Promise<boolean> => Promise.reject(new Error('busy'));
    await assert.rejects(
      throttle.examine({ address: HERE, id: 'x', signal: new AbortController().signal, verify }),
      /busy/,
    );
    assert.equal(await settled(examine('right')), 'right');
  });

  it('remembers a bounded number of addresses', async () => {
    const { clock, throttle, examine } = bench();
    for (let index = 0; index < 5_000; index += 1) {
      await clock.advance(20);
      await examine(`guess ${index}`, `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
    }
    assert.ok(throttle.size <= 2_000, String(throttle.size));
  });
});
