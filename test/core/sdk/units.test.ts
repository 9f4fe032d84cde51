import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  durationMs,
  formatBytes,
  formatDuration,
  formatRate,
  rateBytes,
  sizeBytes,
} from '../../../core/sdk/units.ts';

describe('units', () => {
  it('reads durations', () => {
    const read = ['0', '500ms', '30s', '15m', '12h', '7d', '1w', '1h30m', '1.5s', ' 5s '].map(durationMs);
    assert.deepEqual(
      read,
      [0, 500, 30_000, 900_000, 43_200_000, 604_800_000, 604_800_000, 5_400_000, 1_500, 5_000],
    );
  });

  it('refuses what is no duration and says how one is written', () => {
    for (const text of [
      '',
      '5',
      's',
      '-5s',
      '5 s',
      '5s!',
      '5S',
      '1e3s',
      '5s5',
      '٥s',
      `${'9'.repeat(400)}d`,
    ]) {
      assert.throws(() => durationMs(text), /is not a duration; write it like "500ms"/, text);
    }
  });

  it('reads sizes in binary units, a bare number as KiB', () => {
    const read = ['0', '100', '100B', '1K', '1Ki', '1KiB', '128M', '1.5G', '2T', '1g'].map(sizeBytes);
    assert.deepEqual(
      read,
      [0, 102_400, 100, 1024, 1024, 1024, 134_217_728, 1_610_612_736, 2_199_023_255_552, 1_073_741_824],
    );
  });

  it('refuses what is no size', () => {
    for (const text of ['', 'M', '-1M', '1MB2', '1X', '1 0M', '1Bi', 'off', '8E', '9'.repeat(400)]) {
      assert.throws(() => sizeBytes(text), /is not a size; write it like "0", "512K"/, text);
    }
  });

  it('reads rates, and no limit', () => {
    assert.deepEqual(
      ['0', 'off', '', '10M', '10M/s', '512K'].map(rateBytes),
      [0, 0, 0, 10_485_760, 10_485_760, 524_288],
    );
    assert.deepEqual(
      ['0.4B', '0.0001K', '0.0', '0B'].map(rateBytes),
      [1, 1, 0, 0],
      'next to nothing is not unlimited',
    );
    for (const other of ['10M:5M', '08:00,512K', '-1', '1e3', 'Infinity'])
      assert.throws(() => rateBytes(other), /is not a rate/, other);
    assert.throws(() => rateBytes('fast'), /is not a rate; write it like "0" \(no limit\)/);
  });

  it('shows bytes with the unit that says it shortest', () => {
    const shown = [0, 1, 1023, 1024, 1536, 1_048_575, 1_048_576, 2 ** 50, 2 ** 60].map(formatBytes);
    assert.deepEqual(shown, [
      '0 B',
      '1 B',
      '1023 B',
      '1.0 KiB',
      '1.5 KiB',
      '1.0 MiB',
      '1.0 MiB',
      '1.0 PiB',
      '1024.0 PiB',
    ]);
    assert.equal(formatRate(1536), '1.5 KiB/s');
  });

  it('shows durations by their greatest units', () => {
    const shown = [-1, 0, 999, 12_000, 60_000, 3_661_000, 90_061_000, 86_400_000].map(formatDuration);
    assert.deepEqual(shown, ['0s', '0s', '0s', '12s', '1m', '1h 1m 1s', '1d 1h 1m', '1d']);
  });
});
