import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decide, WINDOW } from '../../../plugins/adaptive-bandwidth/decide.ts';
import type { Limit, Sample, Verdict } from '../../../plugins/adaptive-bandwidth/decide.ts';

const MIB = 1_048_576;
const same = (limit: number): Limit => ({ current: limit, cap: limit });
const mib = (bytes: number): number => Number((bytes / MIB).toFixed(2));

/** Rates in MiB/s, all busy and under the limit of now. */
function judge(
  rates: readonly number[],
  limit: Limit,
  configured: number,
  change: (sample: Sample, index: number) => Sample = (sample) => sample,
) {
  return decide(
    rates.map((rate, index) => change({ rate: rate * MIB, limit: limit.current, isBusy: true }, index)),
    limit,
    configured,
  );
}

/** A link that carries so much (MiB/s), less what noise takes, and never more than the limit. */
function drive(
  capacities: readonly number[],
  configured: number,
  noise: (index: number) => number = () => 1,
): { limits: number[]; verdicts: Verdict[] } {
  let limit = same(configured);
  let window: Sample[] = [];
  const limits: number[] = [];
  const verdicts: Verdict[] = [];
  capacities.forEach((capacity, index) => {
    const carried = capacity * MIB * noise(index);
    const rate = limit.current === 0 ? carried : Math.min(carried, limit.current);
    window = [...window, { rate, limit: limit.current, isBusy: true }].slice(-WINDOW);
    const decision = decide(window, limit, configured);
    limit = decision.limit;
    limits.push(mib(limit.current));
    verdicts.push(decision.verdict);
  });
  return { limits, verdicts };
}

describe('the rules of adaptive bandwidth', () => {
  it('lower by a quarter above a variation of 0.3, not below it', () => {
    // Half at 1.29 and half at 0.71 of the mean: a variation of 0.29.
    assert.deepEqual(
      judge(
        [1.29, 0.71, 1.29, 0.71, 1.29, 0.71].map((part) => part * 4),
        same(4 * MIB),
        8 * MIB,
      ).verdict,
      'near the limit',
    );
    const more = judge(
      [1.31, 0.69, 1.31, 0.69, 1.31, 0.69].map((part) => part * 4),
      same(4 * MIB),
      8 * MIB,
    );
    assert.deepEqual([more.verdict, more.limit.current], ['congested', 3 * MIB]);
  });

  it('keep a limit that stable uploads are near, else raise it by a tenth up to the configured one', () => {
    const limit = { current: 5 * MIB, cap: 8 * MIB };
    assert.deepEqual(judge([4, 4, 4, 4, 4, 4], limit, 8 * MIB), {
      verdict: 'near the limit',
      limit,
      mean: 4 * MIB,
      variation: 0,
    });
    const raised = judge([3.9, 3.9, 3.9, 3.9, 3.9, 3.9], limit, 8 * MIB);
    assert.deepEqual([raised.verdict, raised.limit], ['under-used', { current: 5.5 * MIB, cap: 8 * MIB }]);
    assert.deepEqual(
      judge([1, 1, 1, 1, 1, 1], { current: 7.9 * MIB, cap: 8 * MIB }, 8 * MIB).limit,
      same(8 * MIB),
    );
    assert.deepEqual(judge([1, 1, 1, 1, 1, 1], same(8 * MIB), 8 * MIB).limit, same(8 * MIB));
  });

  it('never go below 1 MiB/s, nor below the configured limit where that is less', () => {
    assert.equal(
      judge([1, 0.1, 1, 0.1, 1, 0.1], { current: 1.2 * MIB, cap: 8 * MIB }, 8 * MIB).limit.current,
      MIB,
    );
    assert.equal(judge([1, 0.1, 1, 0.1, 1, 0.1], { current: MIB, cap: 8 * MIB }, 8 * MIB).limit.current, MIB);
    assert.equal(judge([0.5, 0.1, 0.5, 0.1, 0.5, 0.1], same(MIB / 2), MIB / 2).limit.current, MIB / 2);
  });

  it('act only on full windows with something to upload throughout, of which something got through', () => {
    assert.equal(judge([8, 1, 8, 1, 8], same(8 * MIB), 8 * MIB).verdict, 'too few samples');
    for (const idle of [0, 3, 5]) {
      const { verdict, limit } = judge([8, 1, 8, 1, 8, 1], same(8 * MIB), 8 * MIB, (sample, index) => ({
        ...sample,
        isBusy: index !== idle,
      }));
      assert.deepEqual([verdict, limit], ['not busy', same(8 * MIB)]);
    }
    assert.equal(judge([0, 0, 0, 0, 0, 0], { current: 2 * MIB, cap: 8 * MIB }, 8 * MIB).verdict, 'not busy');
  });

  it('do not answer the spread that a lowered limit makes by lowering it again', () => {
    const limit = { current: 6 * MIB, cap: 8 * MIB };
    const since = (sample: Sample, index: number): Sample => ({
      ...sample,
      limit: (index < 5 ? 8 : 6) * MIB,
    });
    assert.equal(judge([8, 8, 8, 8, 0, 6], limit, 8 * MIB, since).verdict, 'answered');
    assert.equal(judge([8, 8, 8, 8, 0, 4.7], limit, 8 * MIB, since).verdict, 'congested');
    assert.equal(judge([6, 6, 6, 0, 0, 6], limit, 8 * MIB).verdict, 'congested');
  });

  it('take the fastest seen for the limit of an unlimited line, and lift it when it is reached again', () => {
    assert.deepEqual(judge([9, 9, 9, 9, 9, 9], same(0), 0).limit, same(0));
    const lowered = judge([8, 2, 8, 2, 8, 2], same(0), 0).limit;
    assert.deepEqual(lowered, { current: 6 * MIB, cap: 8 * MIB });
    assert.deepEqual(judge([3, 3, 3, 3, 3, 3], { current: 7.5 * MIB, cap: 8 * MIB }, 0).limit, same(0));
    assert.deepEqual(judge([0.5, 0.1, 0.5, 0.1, 0.5, 0.1], same(0), 0).limit, same(0));
  });
});

describe('the limit on a simulated link', () => {
  // Sample by sample, limits in MiB/s: steady at 8 with noise, a drop to a third, and a recovery. 8 × 0.75⁴ =
  // 2.53 < 8 / 3.
  it('follows noise, a drop to a third and a recovery', () => {
    const noise = (index: number): number => [0.95, 1, 0.9, 0.98, 0.93][index % 5] ?? 1;
    const { limits } = drive(
      [...Array<number>(8).fill(8), ...Array<number>(10).fill(8 / 3), ...Array<number>(8).fill(8)],
      8 * MIB,
      noise,
    );
    assert.deepEqual(
      limits,
      [
        8, 8, 8, 8, 8, 8, 8, 8, 8, 6, 4.5, 3.38, 2.53, 2.53, 2.53, 2.53, 2.53, 2.53, 2.53, 2.53, 2.53, 2.53,
        2.53, 2.53, 2.53, 2.53,
      ],
    );
  });

  it('is raised step by step when uploads stay below it, and stays at the configured one', () => {
    const { limits, verdicts } = drive(Array<number>(12).fill(2), 8 * MIB);
    assert.ok(limits.every((limit) => limit === 8));
    assert.equal(verdicts.at(-1), 'under-used');
    const fast = drive([8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 8 * MIB);
    assert.deepEqual(fast.limits.slice(6), [6, 4.5, 3.38, 2.53, 1.9, 2.09, 2.3, 2.53, 2.78, 3.06]);
  });

  it('loses a quarter to one short stall, not all of it', () => {
    const { limits } = drive([8, 8, 8, 8, 8, 8, 0, 8, 8, 8, 8, 8, 8, 8, 8], 8 * MIB);
    assert.deepEqual(limits.slice(5), [8, 6, 6, 6, 6, 6, 6, 6, 6, 6]);
  });

  it('settles below a line that is never steady', () => {
    const { limits } = drive(
      Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 8 : 2)),
      8 * MIB,
    );
    assert.equal(limits.at(-1), 1.9);
    assert.deepEqual(new Set(limits.slice(-12)).size, 1);
  });

  it('stays between the floor and the configured limit, and changes by the steps of the rules alone', () => {
    const rates = fc.array(fc.integer({ min: 0, max: 64 * MIB }), { minLength: 20, maxLength: 80 });
    fc.assert(
      fc.property(rates, fc.integer({ min: 1_000, max: 32 * MIB }), (capacities, configured) => {
        let limit = same(configured);
        let window: Sample[] = [];
        for (const capacity of capacities) {
          window = [
            ...window,
            { rate: Math.min(capacity, limit.current), limit: limit.current, isBusy: true },
          ].slice(-WINDOW);
          const { limit: next } = decide(window, limit, configured);
          const steps = [
            limit.current,
            Math.max(Math.min(MIB, configured), Math.round(limit.current * 0.75)),
            Math.min(configured, Math.round(limit.current * 1.1)),
          ];
          assert.ok(steps.includes(next.current), `${limit.current} to ${next.current}`);
          assert.ok(next.current <= configured && next.current >= Math.min(MIB, configured));
          limit = next;
        }
      }),
    );
  });
});
