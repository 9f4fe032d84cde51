import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Throttle } from '../../../core/sdk/throttle.ts';
import type { Verdict } from '../../../core/sdk/throttle.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';

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
  const state = { right: 'right' };
  const examine = (id: string, address = HERE, signal = new AbortController().signal): Promise<Verdict> =>
    throttle.examine({
      address,
      id,
      signal,
      verify: () => {
        looked.push(id);
        return id === state.right;
      },
    });
  return { clock, throttle, examine, told, looked, state };
}

async function settled<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve('waiting' as const)]);
}

describe('the throttle', () => {
  it('looks at one guess of an address in each pause, and lets other addresses alone', async () => {
    const { clock, examine, told } = bench();
    assert.equal(await examine('a'), 'wrong');
    for (let count = 1; count <= 5; count += 1) {
      const next = examine(`guess ${count}`);
      assert.equal(await examine('right', '10.0.0.2'), 'right');
      await clock.advance(249);
      assert.equal(await settled(next), 'waiting');
      await clock.advance(1);
      assert.equal(await next, 'wrong');
    }
    assert.deepEqual(told.slice(-2), [`${HERE} 5`, `${HERE} 6`]);
  });

  it('answers twelve of twelve who are right within a second while eight guess from there', async () => {
    const { clock, examine, looked } = bench();
    let isOver = false;
    const guessers = Array.from({ length: 8 }, async (_, who) => {
      for (let count = 0; !isOver; count += 1) await examine(`guess ${who} ${count}`);
    });
    const guessedBefore = (): number => looked.filter((id) => id !== 'right').length;
    for (let step = 0; step < 100; step += 1) await clock.advance(100);
    for (let login = 0; login < 12; login += 1) {
      const verdict = examine('right');
      for (let step = 0; step < 10; step += 1) await clock.advance(100);
      assert.equal(await settled(verdict), 'right', `login ${login}`);
    }
    assert.ok(guessedBefore() >= 40 && guessedBefore() <= 4 * 22 + 2, `${guessedBefore()} guesses in 22 s`);
    isOver = true;
    for (let step = 0; step < 40; step += 1) await clock.advance(1_000);
    await Promise.all(guessers);
  });

  it('lets pass at once what was right from there before, and from nowhere else', async () => {
    const { examine } = bench();
    assert.equal(await examine('right'), 'right');
    assert.equal(await examine('a'), 'wrong');
    for (let count = 0; count < 100; count += 1) assert.equal(await settled(examine('right')), 'right');
    assert.equal(await examine('b', '10.0.0.2'), 'wrong');
    assert.equal(await settled(examine('right', '10.0.0.2')), 'waiting');
  });

  it('looks again at what was right before', async () => {
    const { examine, state } = bench();
    assert.equal(await examine('right'), 'right');
    state.right = 'other';
    assert.equal(await examine('right'), 'wrong');
    assert.equal(await settled(examine('other')), 'waiting');
  });

  it('lets nobody try faster by sending much: at last not even what is known is compared', async () => {
    const { clock, examine } = bench();
    assert.equal(await examine('right'), 'right');
    const flood = Array.from({ length: 60 }, (_, index) => examine(`guess ${index}`));
    const refused = examine('right');
    assert.equal(await settled(refused), 'waiting', 'else sixty guesses would be compared at once');
    await clock.advance(2_000);
    assert.equal(await settled(refused), 'too-many');
    assert.equal(await settled(examine('right')), 'right');
    await clock.advance(120_000);
    await Promise.all(flood);
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
    await clock.advance(60_000);
    await Promise.all(all);
  });

  it('makes the pauses longer for who never stops: twelve thousand guesses a day', async () => {
    const { clock, examine, looked } = bench();
    const guess = async (id: number): Promise<void> => {
      const verdict = examine(`guess ${id}`);
      while ((await settled(verdict)) === 'waiting') await clock.advance(250);
    };
    for (let id = 0; id < 1_600; id += 1) await guess(id);
    const hours = clock.monotonic();
    assert.ok(hours > 2_000_000 && hours < 3_000_000, `${hours} ms for ${looked.length}`);
    const [from, before] = [clock.monotonic(), looked.length];
    for (let id = 2_000; id < 2_010; id += 1) await guess(id);
    assert.equal((clock.monotonic() - from) / (looked.length - before), 8_000);
    await clock.advance(11 * 60_000);
    assert.equal(await examine('a fresh start'), 'wrong');
    const next = examine('and the first pause');
    await clock.advance(250);
    assert.equal(await settled(next), 'wrong');
  });

  it('answers the same credentials again without a pause, and many of them by one look', async () => {
    const { clock, examine, looked } = bench();
    assert.equal(await examine('stale'), 'wrong');
    for (let count = 0; count < 50; count += 1) assert.equal(await settled(examine('stale')), 'wrong');
    const same = Array.from({ length: 6 }, () => examine('right'));
    await clock.advance(250);
    assert.deepEqual(
      await settled(Promise.all(same)),
      Array.from({ length: 6 }, () => 'right'),
    );
    assert.deepEqual(looked, ['stale', 'right']);
  });

  it('lets sixteen of an address wait, half a minute at most, and no longer than they stay', async () => {
    const { clock, examine, looked } = bench();
    await examine('a');
    const leaving = new AbortController();
    const left = examine('left', HERE, leaving.signal);
    leaving.abort();
    assert.equal(await settled(left), 'too-many');
    const waiting = Array.from({ length: 17 }, (_, index) => examine(`guess ${index}`));
    await clock.advance(2_000);
    assert.equal(await settled(waiting[0] as Promise<Verdict>), 'too-many', 'the oldest makes way');
    assert.equal(await settled(waiting[1] as Promise<Verdict>), 'waiting');
    assert.ok(!looked.includes('left'));
    for (let step = 0; step < 130; step += 1) await clock.advance(250);
    assert.ok((await Promise.all(waiting)).every((verdict) => verdict !== 'right'));
  });

  it('keeps nobody waiting once it is stopped', async () => {
    const { throttle, examine } = bench();
    await examine('a');
    const waiting = Array.from({ length: 20 }, (_, index) => examine(`guess ${index}`));
    await settled(Promise.all(waiting));
    throttle.stop();
    assert.ok((await Promise.all(waiting)).every((verdict) => verdict === 'too-many'));
    assert.equal(await examine('right'), 'too-many');
  });

  it('goes on after a look that failed', async () => {
    const { clock, throttle, examine } = bench();
    const failing = throttle.examine({
      address: HERE,
      id: 'x',
      signal: new AbortController().signal,
      verify: () => Promise.reject(new Error('busy')),
    });
    const next = examine('right');
    await assert.rejects(failing, /busy/);
    await clock.advance(0);
    assert.equal(await settled(next), 'right');
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
