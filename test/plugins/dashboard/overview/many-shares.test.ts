/**
 * What the overview costs with many shares, counted and not timed: a list of all shares that is made for each card
 * makes it grow with their square.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { LiveShare } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import dashboard from '../../../../plugins/dashboard/index.ts';
import dirRefresh from '../../../../plugins/dir-refresh/index.ts';
import files from '../../../../plugins/files/index.ts';
import uploads from '../../../../plugins/uploads/index.ts';
import warmup from '../../../../plugins/warmup/index.ts';
import { FakeMount, planOf, sharesOf, spec } from '../../../support/shares/fake-shares.ts';
import { emptyRecord, emptyShareStatus } from '../../../support/shares/status-records.ts';

/** How often all shares were listed for the second page, whose parts are drawn already, and its buttons. */
async function listedFor(t: TestContext, count: number) {
  let listed = 0;
  const names = Array.from({ length: count }, (_, index) => `share ${index}`);
  const live = names.map((name): LiveShare => ({
    spec: spec(name),
    health: 'healthy',
    mount: Object.assign(new FakeMount(planOf(spec(name)), name), {
      uploadPause: { until: undefined, obstacle: undefined, set: () => Promise.resolve() },
    }),
    remoteAnswers: true,
  }));
  const shares = sharesOf(() => live);
  const record = { ...emptyRecord(0), shares: names.map((name) => emptyShareStatus(name)) };
  const host = await createTestHost({
    plugins: [dashboard, dirRefresh, files, uploads, warmup],
    config: {
      connections: [{ name: 'nas', type: 'local' }],
      shares: names.map((name) => ({ name, connection: 'nas' })),
    },
    services: {
      clock: createClock(),
      processes: {} as never,
      status: {
        snapshot: { version: 1, takenAt: 0, record },
        syncedAgeMs: undefined,
        onPublish: () => () => undefined,
        owners: () => ({ daemon: new Map(), share: new Map() }),
        notices: [],
      },
      shares: {
        get: shares.get,
        list: () => {
          listed += 1;
          return shares.list();
        },
      },
    },
  });
  t.after(() => host.close());
  await host.inject({ url: '/' });
  listed = 0;
  const { payload } = await host.inject({ url: '/' });
  const buttonsOf = (action: string): number => payload.split(` action="/dashboard/do/${action}`).length - 1;
  return { listed, reconnect: buttonsOf('share-controls/reconnect'), pause: buttonsOf('uploads/pause') };
}

describe('the overview of many shares', () => {
  it('lists them as often as that of few', async (t) => {
    const few = await listedFor(t, 2);
    const many = await listedFor(t, 30);
    assert.deepEqual(few, { listed: few.listed, reconnect: 2, pause: 2 });
    assert.deepEqual(many, { listed: few.listed, reconnect: 30, pause: 30 });
  });
});
