import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cronProblem, nextCronTime } from '../../../core/platform/cron.ts';

const iso = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();
const next = (expression: string, zone: string | undefined, after: string): string | undefined =>
  iso(nextCronTime(expression, zone, Date.parse(after)));

describe('cronProblem', () => {
  it('accepts standard expressions', () => {
    for (const expression of [
      '* * * * *',
      '*/10 * * * *',
      '0 3 * * *',
      ' 0  3 * * 1-5 ',
      '0,30 8-18/2 1,15 jan-MAR *',
      '0 0 * * MON-FRI',
      '0 0 * * 7',
      '0 0 * * 0',
      '0 0 29 2 *',
      '0 0 * * FRI-SUN',
    ]) {
      assert.equal(cronProblem(expression, 'Europe/Berlin'), undefined, expression);
    }
  });

  const faults: readonly (readonly [string, RegExp])[] = [
    ['', /has five fields .* has 0/],
    ['* * * *', /has five fields .* has 4/],
    ['* * * * * *', /has five fields .* has 6/],
    ['@daily', /nickname.*five fields/],
    ['61 * * * *', /minute "61": 61 is not between 0 and 59/],
    ['0 24 * * *', /hour .*between 0 and 23/],
    ['0 0 0 * *', /day .*between 1 and 31/],
    ['0 0 * 13 *', /month .*between 1 and 12/],
    ['0 0 * * 8', /weekday .*between 0 and 7/],
    ['0 0 L * *', /day "L": "L" is not a day/],
    ['0 0 15W * *', /"15W" is not a day/],
    ['0 0 * * mon#1', /weekday "mon#1".*not understood/],
    ['? * * * *', /minute "\?".*not understood/],
    ['*/0 * * * *', /step must be from 1 to 59/],
    ['5/15 * * * *', /a step needs a range or \*, such as 5-59\/15/],
    ['5-1 * * * *', /range 5-1 runs backwards/],
    ['1,,3 * * * *', /not understood/],
    ['-1 * * * *', /not understood/],
    ['1.5 * * * *', /not understood/],
    ['0 0 * FOO *', /"FOO" is not a month/],
    ['0 0 31 2 *', /never comes/],
  ];
  for (const [expression, sentence] of faults) {
    it(`says what is wrong with "${expression}"`, () =>
      assert.match(cronProblem(expression) ?? '', sentence));
  }

  it('says when the time zone is not known', () => {
    assert.match(cronProblem('0 3 * * *', 'Mars/Olympus') ?? '', /time zone "Mars\/Olympus" is not known/);
    assert.equal(cronProblem('0 3 * * *', ''), undefined);
  });
});

describe('nextCronTime', () => {
  it('counts weekday 7 as Sunday', () => {
    assert.equal(next('0 0 * * 7', 'UTC', '2026-11-21T05:00:00Z'), '2026-11-22T00:00:00.000Z');
  });

  it('takes either of day and weekday when both are given', () => {
    assert.equal(next('0 0 13 * 5', 'UTC', '2026-11-21T05:00:00Z'), '2026-11-27T00:00:00.000Z');
    assert.equal(next('0 0 13 * 5', 'UTC', '2026-12-12T00:00:00Z'), '2026-12-13T00:00:00.000Z');
  });

  it('keeps to the local hour when summer time begins and ends', () => {
    assert.equal(next('30 3 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z'), '2026-03-29T01:30:00.000Z');
    assert.equal(next('30 3 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z'), '2026-10-25T02:30:00.000Z');
  });

  it('has no next time for a date that does not exist', () => {
    assert.equal(nextCronTime('0 0 31 2 *', 'UTC', 0), undefined);
  });
});
