/** The speed and the transfers of a mount, from what rclone counts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import { NOTHING_READ, withUploads } from '../../../../plugins/mount/layer/layer-figures.ts';
import { createMeter } from '../../../../plugins/mount/stats/meter.ts';
import { createStatsReader } from '../../../../plugins/mount/stats/mount-stats.ts';

const MIB = 1_048_576;

/** Speeds shown when the count stands at these figures, one a second. */
function shown(counts: readonly number[], everyMs = 1_000): readonly number[] {
  let nowMs = 5_000;
  const meter = createMeter({ monotonic: () => nowMs });
  return counts.map((bytes) => {
    nowMs += everyMs;
    return meter(bytes);
  });
}

const sum = (speeds: readonly number[]): number => speeds.reduce((all, one) => all + one, 0);

describe('the meter of a speed', () => {
  it('shows the speed of the last seconds, however the bytes are told in pieces', () => {
    // A line of 2 MiB/s, whose progress is told every second time.
    const told = [0, 0, 0, 4, 4, 8, 8, 12, 12, 16].map((mib) => mib * MIB);
    for (const speed of shown(told).slice(6))
      assert.ok(speed >= 1.3 * MIB && speed <= 2.7 * MIB, `${speed / MIB} MiB/s`);
  });

  it('shows in all the bytes that were counted, and nothing once none come any more', () => {
    const speeds = shown([0, 0, 0, 0, 3, 6, 6.3, 6.3, 6.3, 6.3, 6.3].map((mib) => mib * MIB));
    assert.equal(Math.round((sum(speeds) * 10) / MIB), 63);
    assert.deepEqual(speeds.slice(-2), [0, 0]);
  });

  it('counts nothing twice when a count falls back', () => {
    const speeds = shown([0, 0, 0, 0, 6, 3, 4, 6, 6, 6, 6, 6].map((mib) => mib * MIB));
    assert.equal(Math.round(sum(speeds) / MIB), 6);
    assert.deepEqual(speeds.slice(7), [0, 0, 0, 0, 0]);
  });

  it('takes calls close together for one, and shows the mean where calls are rare', () => {
    assert.deepEqual(shown([0, 100, 200], 150), [0, 0, (200 * 1_000) / 300]);
    assert.deepEqual(shown([0, 60, 60], 60_000), [0, 1, 0]);
  });
});

interface Group {
  readonly bytes: number;
  readonly transferring?: readonly object[];
  readonly errors?: number;
}

describe('the figures of a mount', () => {
  const world = (): {
    readonly read: (isBusy?: boolean) => ReturnType<ReturnType<typeof createStatsReader>>;
    readonly groups: Record<string, Group>;
    readonly at: { nowMs: number };
  } => {
    const at = { nowMs: 0 };
    const groups: Record<string, Group> = {};
    const call = (path: string, { group = '' }: { readonly group?: string }): Promise<unknown> =>
      Promise.resolve(path === 'core/stats' ? (groups[group] ?? {}) : {});
    const read = createStatsReader({
      rc: { call, close: () => undefined } as unknown as RcClient,
      clock: { monotonic: () => at.nowMs },
      openFiles: () => Promise.resolve({ open: 0, dirty: 0 }),
      fs: 'nas:',
      space: () => Promise.resolve(undefined),
    });
    return { read: (isBusy) => read(AbortSignal.timeout(5_000), isBusy), groups, at };
  };

  it('have nothing of what the uploader sends and renames, which rclone counts in groups of their own', async () => {
    const { read, groups, at } = world();
    await read();
    // The sum of all groups; each file that was renamed is in it twice.
    groups[''] = { bytes: 48 * MIB, transferring: [{}, {}], errors: 3 };
    groups['global_stats'] = { bytes: 2 * MIB, transferring: [{}] };
    at.nowMs += 2_000;
    const { speed, transfers, errors, downloading } = await read(true);
    assert.deepEqual([speed, transfers, errors, downloading], [MIB, 1, 3, true]);
  });

  it('show what is read while no file is open as soon as they are told of it', async () => {
    const { read, groups, at } = world();
    await read();
    groups['global_stats'] = { bytes: 2 * MIB };
    at.nowMs += 2_000;
    assert.equal((await read(false)).speed, 0);
    at.nowMs += 2_000;
    assert.ok((await read(true)).speed > 0);
  });

  it('are with those of the uploader: what is sent and what is read use the line both', () => {
    const reading = { ...NOTHING_READ, speed: 2, transfers: 1, downloading: true };
    const waiting = {
      lookedAtMs: 0,
      dirtyFiles: 1,
      dirtyBytes: 9,
      stuckFiles: 0,
      uploading: 1,
      uploadedBytes: 5,
      localBytes: 9,
    };
    const both = withUploads(reading, waiting, { inTheWay: undefined, uploadSpeed: 3 });
    assert.deepEqual([both.speed, both.transfers, both.downloading], [5, 2, true]);
    const { downloading } = withUploads(NOTHING_READ, waiting, { inTheWay: undefined, uploadSpeed: 3 });
    assert.equal(downloading, false);
  });
});
