import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { divideBandwidth, faster, remaining, slower } from '../../../core/bandwidth/budget.js';
import type { Demand } from '../../../core/bandwidth/budget.js';

const demands = (...busy: readonly boolean[]): Demand[] =>
  busy.map((up, index) => ({ share: `s${index}`, up, down: false }));
const ups = (total: number, ...busy: readonly boolean[]): number[] =>
  [...divideBandwidth({ up: total, down: 0 }, demands(...busy)).values()].map(({ up }) => up);

describe('division of the bandwidth budget', () => {
  it('is unlimited for all when the budget is', () => {
    assert.deepEqual(ups(0, true, false), [0, 0]);
  });

  it('is even while all or none are busy', () => {
    assert.deepEqual(ups(100, false, false), [50, 50]);
    assert.deepEqual(ups(100, true, true), [50, 50]);
  });

  it('leaves the idle ones a twentieth together', () => {
    const [much, little] = [4_750_000, 250_000];
    assert.deepEqual(ups(10_000_000, true, false, true, false), [much, little, much, little]);
  });

  it('leaves each idle one what pays for a read in time, where all of them have a quarter at most', () => {
    const mib = 1_048_576;
    assert.deepEqual(ups(mib, true, false), [mib - 65_536, 65_536]);
    assert.deepEqual(ups(mib, true, false, false, false, false), [mib * 0.75, ...Array(4).fill(65_536)]);
    const [busy = 0, idle = 0] = ups(mib, true, ...Array<boolean>(19).fill(false));
    assert.deepEqual([busy, idle], [mib * 0.75, Math.floor((mib * 0.25) / 19)]);
  });

  it('leaves an idle one no more than a busy one', () => {
    assert.deepEqual(ups(200_000, ...Array<boolean>(9).fill(true), false), Array(10).fill(20_000));
  });

  it('divides each direction by its own demand', () => {
    const parts = divideBandwidth({ up: 10_000_000, down: 10_000_000 }, [
      { share: 'a', up: true, down: false },
      { share: 'b', up: false, down: true },
    ]);
    assert.deepEqual(
      [...parts.values()],
      [
        { up: 9_500_000, down: 500_000 },
        { up: 500_000, down: 9_500_000 },
      ],
    );
  });

  it('never exceeds the budget, and leaves nobody at 0, which would be unlimited', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 64, max: 2 ** 40 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 64 }),
        (total, busy) => {
          const parts = ups(total, ...busy);
          assert.ok(parts.every((part) => part > 0));
          assert.ok(parts.reduce((sum, part) => sum + part, 0) <= total);
        },
      ),
    );
  });

  describe('with limits of single shares', () => {
    const limited = (total: number, ...limits: readonly number[]): number[] => {
      const all = limits.map((up, index) => ({
        share: `s${index}`,
        up: true,
        down: false,
        limit: { up, down: 0 },
      }));
      return [...divideBandwidth({ up: total, down: 0 }, all).values()].map(({ up }) => up);
    };

    it('gives the others what a share may not use', () => {
      assert.deepEqual(limited(900, 0, 100, 0), [400, 100, 400]);
      assert.deepEqual(limited(900, 350, 100, 0), [350, 100, 450]);
    });

    it('holds them where the whole is unlimited, and leaves alone who is below its own', () => {
      assert.deepEqual(limited(0, 100, 0), [100, 0]);
      assert.deepEqual(limited(100, 80, 70), [50, 50]);
    });

    it('never exceeds the budget or a limit, and leaves nobody at 0', () => {
      const limit = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 30 }));
      fc.assert(
        fc.property(
          fc.integer({ min: 64, max: 2 ** 30 }),
          fc.array(limit, { minLength: 1, maxLength: 64 }),
          (total, limits) => {
            const parts = limited(total, ...limits);
            assert.ok(parts.every((part, at) => part > 0 && (limits[at] === 0 || part <= limits[at]!)));
            assert.ok(parts.reduce((sum, part) => sum + part, 0) <= total);
          },
        ),
      );
    });
  });

  it('takes 0 for unlimited when it compares', () => {
    assert.deepEqual(slower({ up: 0, down: 5 }, { up: 7, down: 0 }), { up: 7, down: 5 });
    assert.deepEqual(slower({ up: 3, down: 0 }, { up: 7, down: 0 }), { up: 3, down: 0 });
  });

  it('never makes a limited rest unlimited', () => {
    assert.deepEqual(remaining({ up: 10, down: 0 }, [{ up: 10, down: 4 }]), { up: 1, down: 0 });
    // Who has no limit may take all of it.
    assert.deepEqual(remaining({ up: 1_000, down: 1_000 }, [{ up: 0, down: 400 }]), { up: 50, down: 600 });
    assert.deepEqual(faster({ up: 0, down: 5 }, { up: 5, down: 7 }), { up: 0, down: 7 });
  });
});
