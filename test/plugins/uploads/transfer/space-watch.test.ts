/** What was written while a disk was full, on a disk that is full when the test says so. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { NEVER_FULL, SpaceWatch } from '../../../../plugins/uploads/transfer/space-watch.ts';

const GIB = 1_073_741_824;

describe('a disk that is full for a while', () => {
  let clock: ReturnType<typeof createManualClock>;
  let free: number;
  let space: SpaceWatch;
  const ns = (ms: number): bigint => BigInt(Math.trunc(ms)) * 1_000_000n;
  beforeEach(() => {
    clock = createManualClock();
    free = GIB;
    space = new SpaceWatch('/', clock, async () => free);
  });

  it('is known to whoever plans when there is room again, for what was written meanwhile alone', async () => {
    const end = new AbortController();
    const watching = space.watch(end.signal);
    const tick = () => clock.advance(500);
    assert.equal(await space.look(), NEVER_FULL);
    await clock.advance(5_000);
    const before = clock.now();
    free = 0;
    await tick();
    const written = clock.now();
    await tick();
    free = GIB;
    await tick();
    const after = clock.now();
    await clock.advance(60_000);
    const wasFull = await space.look();
    assert.deepEqual(
      [before - 3_000, written, after + 1_000].map((ms) => wasFull(ns(ms))),
      [false, true, false],
    );
    await clock.advance(60_000);
    assert.equal(await space.look(), wasFull, 'nothing has happened since');
    end.abort();
    await tick();
    await watching;
  });

  it('leaves nothing in doubt but what was written then, also where it is full again and again', async () => {
    const times: number[] = [];
    for (let turn = 0; turn < 150; turn += 1) {
      free = GIB;
      await space.look();
      await clock.advance(10_000);
      free = 0;
      await space.look();
      times.push(clock.now());
      await clock.advance(1_000);
    }
    free = GIB;
    const wasFull = await space.look();
    assert.ok(times.every((ms) => wasFull(ns(ms))));
    assert.equal(wasFull(ns((times.at(-1) ?? 0) + 2_000)), false);
    assert.equal(wasFull(ns((times[0] ?? 0) - 20_000)), false);
  });

  describe('on a machine whose clock is set back', () => {
    const HOURS = 3 * 3_600_000;
    const setBack = (): void => {
      const now = clock.now.bind(clock);
      clock.now = () => now() - HOURS;
    };
    const lookAfter = async (ms: number) => {
      await clock.advance(ms);
      return space.look();
    };

    it('leaves what is written then in doubt, and no longer than it is full', async () => {
      await space.look();
      free = 0;
      await lookAfter(500);
      setBack();
      const [back, wasFull] = [clock.now(), await lookAfter(500)];
      assert.deepEqual([wasFull(ns(back + 100)), wasFull(ns(clock.now() + 60_000))], [true, true]);
      await lookAfter(60_000);
      free = GIB;
      const later = await lookAfter(500);
      assert.deepEqual(
        [back - 2_000, back + 30_000, clock.now() + 10_000, back + HOURS].map((ms) => later(ns(ms))),
        [false, true, false, false],
      );
    });

    it('leaves in doubt also what was written where it has become full meanwhile', async () => {
      await space.look();
      setBack();
      free = 0;
      const back = clock.now();
      assert.equal((await lookAfter(500))(ns(back + 100)), true);
    });

    it('does not doubt what is written in the hours that come again', async () => {
      free = 0;
      await space.look();
      const full = clock.now();
      free = GIB;
      assert.equal((await lookAfter(500))(ns(full + 100)), true);
      setBack();
      const wasFull = await lookAfter(500);
      assert.equal(wasFull(ns(full + 100)), false);
      assert.equal(
        wasFull(ns(clock.now() - 5_000)),
        true,
        'what was written before that, where nobody had looked',
      );
    });
  });

  it('makes everything doubtful that was written before the first look, where that finds it full', async () => {
    free = 0;
    const wasFull = await space.look();
    assert.deepEqual([wasFull(0n), wasFull(ns(clock.now()))], [true, true]);
  });
});
