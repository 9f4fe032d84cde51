/** The status as runners are shown it, whatever strangers say in it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PluginContext } from '../../../../../core/contract/plugin.ts';
import type { Snapshot } from '../../../../../core/contract/status.ts';
import { daemonSnapshot } from '../../../../../core/plugins/runner/carried/daemon-snapshot.ts';
import type { Declaration } from '../../../../../core/plugins/runner/carried/declaration.ts';
import { shownSnapshot } from '../../../../../core/plugins/runner/carried/shown-snapshot.ts';
import { frame } from '../../../../../core/plugins/runner/protocol.ts';

const services: Readonly<Record<string, unknown>> = {
  status: {
    owners: () => ({
      daemon: new Map([
        ['nasOffline', 'ours'],
        ['beds', 'garden'],
      ]),
      share: new Map([
        ['warmup', 'ours'],
        ['bed', 'garden'],
      ]),
    }),
  },
  plugins: {
    list: () => [
      { name: 'ours', thirdParty: false },
      { name: 'garden', thirdParty: true },
    ],
  },
};
function contextWith(snapshot?: Snapshot): PluginContext {
  const status = { ...(services['status'] as object), snapshot, notices: [] };
  const service = (name: string): unknown => (name === 'status' ? status : services[name]);
  return { use: service, find: service } as unknown as PluginContext;
}

const ctx = contextWith();

function snapshotOf(fields: object, share: object): Snapshot {
  const record = {
    startedAt: 1,
    allSynced: true,
    ...fields,
    shares: [{ name: 'photos', mounted: true, ...share }],
  };
  return { version: 7, takenAt: 2, record: record as never };
}

/** Three bytes a character. */
const long = (characters: number): string => '床'.repeat(characters);

describe('the status as a process of its own is shown it', () => {
  it('is whole where it fits', () => {
    const snapshot = snapshotOf({ nasOffline: false, beds: long(100_000), gone: 1 }, { warmup: 1, bed: 2 });
    assert.equal(shownSnapshot(ctx, snapshot), snapshot);
  });

  it('is without what strangers say where that is too much, of the daemon or of a share', () => {
    for (const snapshot of [
      snapshotOf({ nasOffline: false, beds: long(530_000) }, { warmup: 1, bed: 2 }),
      snapshotOf({ nasOffline: false, gone: 5 }, { warmup: 1, bed: long(530_000) }),
    ]) {
      const shown = shownSnapshot(ctx, snapshot);
      assert.deepEqual(shown, snapshotOf({ nasOffline: false }, { warmup: 1 }));
      assert.equal(shownSnapshot(ctx, snapshot), shown, 'all are shown the same');
      const declaration = { name: 'lamp', requires: ['status'], shareStatus: [] } as unknown as Declaration;
      frame({ is: 'world', world: daemonSnapshot(contextWith(snapshot), declaration) });
    }
  });

  it('is made into text once for all processes that are told it, and for all cycles that they hear of', () => {
    const snapshot = snapshotOf({ nasOffline: false }, { warmup: 1 });
    let made = 0;
    const record = new Proxy(snapshot.record, {
      ownKeys: (target) => {
        made += 1;
        return Reflect.ownKeys(target);
      },
    });
    const watched = { ...snapshot, record };
    const declaration = { name: 'lamp', requires: ['status'], shareStatus: [] } as unknown as Declaration;
    for (let runner = 0; runner < 5; runner += 1) {
      frame({ is: 'world', world: daemonSnapshot(contextWith(watched), declaration) });
      frame({ is: 'call', id: 1, kind: 'tap', index: 0, args: [shownSnapshot(ctx, watched), 12] });
    }
    assert.equal(made, 1);
  });

  it('is what the core says where that of our own plugins is too much', () => {
    const snapshot = snapshotOf({ nasOffline: long(400_000) }, { warmup: 1 });
    assert.deepEqual(shownSnapshot(ctx, snapshot), snapshotOf({}, {}));
  });
});
