import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import quietHours from './index.js';
import { quietTime } from './schedule.js';

const NIGHT = { from: '30 22 * * *', to: '0 6 * * *', timezone: 'Europe/Berlin' };

const moments = (rule, table) => {
  const isQuiet = quietTime(rule);
  for (const [moment, expected] of Object.entries(table))
    assert.equal(isQuiet(Date.parse(moment)), expected, moment);
};

test('over midnight, and at its edges', () =>
  moments(NIGHT, {
    '2026-01-10T22:29:59+01:00': false,
    '2026-01-10T22:30:00+01:00': true,
    '2026-01-11T00:00:00+01:00': true,
    '2026-01-11T05:59:59+01:00': true,
    '2026-01-11T06:00:00+01:00': false,
  }));

test('the night in which the clocks go forward, and the one in which they go back', () => {
  moments(NIGHT, {
    '2026-03-28T22:30:00+01:00': true,
    '2026-03-29T05:59:00+02:00': true,
    '2026-03-29T06:00:00+02:00': false,
    '2026-10-24T22:29:00+02:00': false,
    '2026-10-24T22:30:00+02:00': true,
    '2026-10-25T05:59:00+01:00': true,
    '2026-10-25T06:00:00+01:00': false,
  });
  // 02:30 does not exist in the first of these nights, and exists twice in the second.
  const late = { from: '30 2 * * *', to: '0 4 * * *', timezone: 'Europe/Berlin' };
  moments(late, {
    '2026-03-29T01:59:00+01:00': false,
    '2026-03-29T03:45:00+02:00': true,
    '2026-03-29T04:00:00+02:00': false,
    '2026-10-25T02:29:00+02:00': false,
    '2026-10-25T03:00:00+01:00': true,
    '2026-10-25T04:00:00+01:00': false,
  });
});

test('days of the week', () =>
  moments(
    { from: '0 8 * * 1-5', to: '0 18 * * 1-5', timezone: 'UTC' },
    { '2026-01-09T12:00:00Z': true, '2026-01-10T12:00:00Z': false, '2026-01-12T08:00:00Z': true },
  ));

test('limits come and go with the time, and a rule that cannot be read says so', async (t) => {
  const host = await createTestHost({
    plugins: [quietHours],
    config: {
      plugins: {
        'quiet-hours': {
          enabled: true,
          timezone: 'UTC',
          rules: [
            { shares: ['team'], from: '0 6 * * *', to: '0 7 * * *', up: '1M' },
            { shares: ['files'], from: 'at noon', to: '0 7 * * *', up: '1M' },
          ],
        },
      },
    },
  });
  t.after(() => host.close());
  const limits = () => host.hooks.collect('collectShareLimits');
  assert.deepEqual(await limits(), []);
  await host.advance(6 * 3_600_000);
  assert.deepEqual(await limits(), [{ share: 'team', up: 1_048_576, down: 0 }]);
  assert.deepEqual(host.status().quietShares, ['team']);
  await host.advance(3_600_000);
  assert.deepEqual(await limits(), []);
  const [notice] = await host.hooks.collect('collectNotices');
  assert.match(notice.message, /^The quiet hours of files cannot be read: .*at noon/);
});
