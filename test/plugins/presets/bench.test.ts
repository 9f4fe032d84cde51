import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { createClock } from '../../../core/platform/clock.ts';
import { measureDisk } from '../../../plugins/presets/bench/disk.ts';
import { proposal, sentences } from '../../../plugins/presets/bench/words.ts';
import type { Measured } from '../../../plugins/presets/bench/words.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

const MIB = 1_048_576;

describe('mountkeeper bench', () => {
  it('proposes the preset of the files in which most bytes lie', () => {
    assert.equal(proposal({ sizes: [600 * MIB, ...Array<number>(50).fill(10 * MIB)] }), 'video');
    assert.equal(proposal({ sizes: [...Array<number>(50).fill(30 * MIB), 600 * MIB] }), 'photographer');
    assert.equal(proposal({ sizes: Array<number>(100).fill(MIB) }), 'office');
    assert.equal(proposal({ sizes: [] }), undefined);
    assert.equal(proposal({ sizes: [0] }), undefined);
  });

  it('says in sentences what was measured and what follows', () => {
    const measured: Measured = {
      share: 'photos',
      line: { listingMs: 84.6, sizes: [30 * MIB, 30 * MIB], bytesPerSecond: 12 * MIB },
      cacheDir: '/var/cache/mountkeeper',
      disk: { bytesPerSecond: 210 * MIB, smallMs: 2.14 },
    };
    assert.deepEqual(sentences(measured), [
      'The line to photos: a listing over a new connection takes 85 ms, and one file is read with 12.0 MiB/s.',
      'The cache disk (/var/cache/mountkeeper): a large file is written with 210.0 MiB/s, a small one is safe after ' +
        '2.1 ms.',
      'Most of what is there lies in files above 5.0 MiB (2 files near the top were counted): ' +
        '`mountkeeper preset photographer` suits that.',
    ]);
    const bad = sentences({
      ...measured,
      line: { ...measured.line, listingMs: 900, sizes: [] },
      disk: { bytesPerSecond: 8 * MIB, smallMs: 40 },
    }).join('\n');
    for (const what of [/slower than the line/, /waits for the cache disk/, /slow to greet/, /no preset/])
      assert.match(bad, what);
  });

  it('measures a disk and leaves nothing on it', async (t) => {
    const scratch = await createScratch('bench');
    t.after(() => scratch.close());
    const { bytesPerSecond, smallMs } = await measureDisk(scratch.path('.'), createClock());
    assert.ok(bytesPerSecond > MIB && smallMs > 0 && smallMs < 10_000, `${bytesPerSecond} ${smallMs}`);
    assert.deepEqual(await readdir(scratch.path('.')), []);
  });
});
