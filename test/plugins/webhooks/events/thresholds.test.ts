import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { NotificationEvent, ShareStatus, Snapshot } from 'mountkeeper';
import { NOTHING_CROSSED } from '../../../../plugins/webhooks/events/thresholds.ts';
import type { Crossed } from '../../../../plugins/webhooks/events/thresholds.ts';
import { StatusEvents } from '../../../../plugins/webhooks/events/status-events.ts';

function createKit(former: Crossed = NOTHING_CROSSED) {
  const clock = createManualClock();
  const events: NotificationEvent[] = [];
  const state = {
    maxSize: '1000B',
    disk: { usedBytes: 10, limitBytes: 100 } as { usedBytes: number; limitBytes: number } | undefined,
    writebackDepth: 10,
    cacheThresholdPct: 80,
    changes: 0,
    looks: 0,
  };
  const lookout = new StatusEvents(
    {
      clock,
      cache: () => ({ dir: '/cache', max_size: state.maxSize, max_age: '1d', min_free_space: '0' }),
      limits: () => ({ writebackDepth: state.writebackDepth, cacheThresholdPct: state.cacheThresholdPct }),
      add: (event) => void events.push(event),
      onChange: () => void (state.changes += 1),
      disk: async () => {
        state.looks += 1;
        if (!state.disk) throw new Error('no such folder');
        return state.disk;
      },
    },
    former,
  );
  const look = async (
    ...shares: readonly (Pick<ShareStatus, 'name'> & Partial<ShareStatus>)[]
  ): Promise<readonly string[]> => {
    const before = events.length;
    const filled = shares.map((share) => ({ dirtyCount: 0, cacheBytes: 0, ...share }) as ShareStatus);
    lookout.look({ version: 1, takenAt: 0, record: { shares: filled } } as unknown as Snapshot);
    await clock.advance(1_000);
    return events.slice(before).map(({ type }) => type);
  };
  return { clock, lookout, events, state, look };
}

describe('the write-back depth', () => {
  it('is told once when exceeded and once when back to normal, over all shares', async () => {
    const { look } = createKit();
    const depths = [5, 10, 11, 12, 9, 11, 8, 8, 11];
    const told = [];
    for (const depth of depths)
      told.push(await look({ name: 'a', dirtyCount: depth - 1 }, { name: 'b', dirtyCount: 1 }));
    assert.deepEqual(told, [
      [],
      [],
      ['writeback.exceeded'],
      [],
      [],
      [],
      ['writeback.normal'],
      [],
      ['writeback.exceeded'],
    ]);
  });

  it('is not told with 0, nor again after a restart', async () => {
    const { look, state } = createKit();
    state.writebackDepth = 0;
    assert.deepEqual(await look({ name: 'a', dirtyCount: 1e6 }), []);
    const again = createKit({ ...NOTHING_CROSSED, writeback: true });
    assert.deepEqual(await again.look({ name: 'a', dirtyCount: 20 }), []);
    assert.deepEqual(await again.look({ name: 'a', dirtyCount: 0 }), ['writeback.normal']);
  });

  it('is not back to normal before all files have been counted, but may be exceeded', async () => {
    const again = createKit({ ...NOTHING_CROSSED, writeback: true });
    const uncounted = { name: 'a', isDirtyCountUnknown: true };
    assert.deepEqual(await again.look(uncounted, { name: 'b' }), []);
    assert.deepEqual(await again.look({ name: 'a', dirtyCount: 20 }, { name: 'b' }), []);
    assert.deepEqual(await createKit().look(uncounted, { name: 'b', dirtyCount: 11 }), [
      'writeback.exceeded',
    ]);
  });
});

describe('the cache threshold', () => {
  it('is not told again because a share was mounted anew, which counts its cache only after a while', async () => {
    const { look } = createKit();
    const told = [];
    for (const bytes of [900, 0, 0, 900]) told.push((await look({ name: 'a', cacheBytes: bytes })).length);
    assert.deepEqual(told, [1, 0, 0, 0]);
  });

  it('is told once per share and crossing', async () => {
    const { look, events } = createKit();
    const told = [];
    for (const bytes of [790, 800, 850, 790, 805, 749, 800])
      told.push((await look({ name: 'a', cacheBytes: bytes }, { name: 'b', cacheBytes: 1 })).length);
    assert.deepEqual(told, [0, 1, 0, 0, 0, 0, 1]);
    assert.deepEqual(events[0]?.data, {
      share: 'a',
      percent: 80,
      threshold_percent: 80,
      used_bytes: 800,
      limit_bytes: 1000,
    });
  });

  it('is taken against the file system where the cache has no limit of its own, looked at now and then', async () => {
    const { look, state, events } = createKit();
    state.maxSize = '0';
    for (let round = 0; round < 40; round += 1) await look({ name: 'a', cacheBytes: 1e9 });
    assert.deepEqual([events.length, state.looks], [0, 2]);
    state.disk = { usedBytes: 95, limitBytes: 100 };
    for (let round = 0; round < 70; round += 1) await look({ name: 'a' });
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['share'], data['percent']]),
      [['cache.threshold', null, 95]],
    );
  });

  it('is known soon though the folder of the cache comes only with the first mount', async () => {
    const { look, state, events } = createKit();
    Object.assign(state, { maxSize: '0', disk: undefined });
    await look({ name: 'a' });
    state.disk = { usedBytes: 95, limitBytes: 100 };
    for (let round = 0; round < 3; round += 1) await look({ name: 'a' });
    assert.deepEqual(
      events.map(({ type }) => type),
      ['cache.threshold'],
    );
  });
});

describe('a share', () => {
  const failed = { share: 'a', from: 'probing', to: 'failed', reason: 'no way' } as const;
  const probing = { share: 'a', from: 'failed', to: 'probing', reason: null } as const;
  const healthy = { share: 'a', from: 'probing', to: 'healthy', reason: null } as const;

  it('is told to have failed also when the clock is set back meanwhile, and never for less than no time', async () => {
    const { look, lookout, events, clock } = createKit();
    const trueNow = clock.now.bind(clock);
    lookout.healthChanged(failed);
    clock.now = () => trueNow() - 86_400_000;
    await look({ name: 'a' });
    lookout.healthChanged(healthy);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['duration_seconds']]),
      [
        ['share.failed', undefined],
        ['share.healed', 0],
      ],
    );
  });

  it('is told to have failed once it lasts, and to be healed', async () => {
    const { look, lookout, events, clock } = createKit();
    lookout.healthChanged(failed);
    for (let second = 0; second < 30; second += 1) {
      if (second % 7 === 0) [probing, failed].forEach((change) => lookout.healthChanged(change));
      await look({ name: 'a' });
    }
    assert.deepEqual(
      events.map(({ type }) => type),
      ['share.failed'],
    );
    await clock.advance(30_000);
    lookout.healthChanged(probing);
    lookout.healthChanged(healthy);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['duration_seconds']]),
      [
        ['share.failed', undefined],
        ['share.healed', 60],
      ],
    );
  });

  it('that is healed soon is not worth a word', async () => {
    const { look, lookout, events } = createKit();
    for (let round = 0; round < 5; round += 1) {
      lookout.healthChanged(failed);
      for (let second = 0; second < 5; second += 1) await look({ name: 'a' });
      lookout.healthChanged(healthy);
    }
    await look({ name: 'a' });
    assert.deepEqual(events, []);
  });

  it('that is up again without its NAS has failed no longer, and works again once it can be listed', async () => {
    const { look, lookout, events } = createKit();
    lookout.healthChanged(failed);
    lookout.healthChanged(probing);
    lookout.mounted('a');
    for (let second = 0; second < 20; second += 1) await look({ name: 'a' });
    assert.deepEqual(events, [], 'its failure did not last');
    lookout.healthChanged(failed);
    for (let second = 0; second < 12; second += 1) await look({ name: 'a' });
    lookout.healthChanged(probing);
    lookout.mounted('a');
    for (let second = 0; second < 12; second += 1) await look({ name: 'a' });
    const types = (): readonly string[] => events.map(({ type }) => type);
    assert.deepEqual(types(), ['share.failed']);
    lookout.healthChanged({ ...healthy, mounted: true });
    assert.deepEqual(types(), ['share.failed', 'share.healed']);
  });

  it('is remembered across a restart, and forgotten when it leaves', async () => {
    const kit = createKit({ ...NOTHING_CROSSED, failedShares: { a: Date.UTC(2025, 11, 31, 23) } });
    await kit.look({ name: 'a' });
    kit.lookout.healthChanged(healthy);
    assert.deepEqual(
      kit.events.map(({ type, data }) => [type, data['duration_seconds']]),
      [['share.healed', 3_601]],
    );
    const gone = createKit({ ...NOTHING_CROSSED, failedShares: { a: 1 } });
    await gone.look({ name: 'b' });
    assert.deepEqual([gone.lookout.crossed.failedShares, gone.state.changes], [{}, 1]);
  });
});
