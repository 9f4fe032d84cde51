import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { createClosingFiles } from '../../../../plugins/mount/recovery/closing-files.ts';

describe('a changed file that rclone has closed and not queued yet', () => {
  let metaRoot: string;
  const record = (name: string, isDirty: boolean): Promise<void> =>
    writeFile(
      join(metaRoot, name),
      JSON.stringify({ ModTime: '', ATime: '', Size: 1, Rs: [], Fingerprint: '', Dirty: isDirty }),
    );
  const open = (...names: readonly string[]) => names.map((path) => ({ path, meta: 'torn' as const }));

  beforeEach(async () => {
    metaRoot = await mkdtemp(join(tmpdir(), 'mk-closing-'));
  });
  afterEach(() => rm(metaRoot, { recursive: true }));

  it('counts until it is queued', async () => {
    const look = createClosingFiles({ metaRoot, clock: createManualClock() });
    await record('a', true);
    assert.deepEqual(
      [await look(open('a'), 0), await look([], 0), await look([], 0), await look([], 1), await look([], 0)],
      [0, 1, 1, 0, 0],
    );
  });

  it('counts while its record is being written, and no more once that says that it is clean or gone', async () => {
    const look = createClosingFiles({ metaRoot, clock: createManualClock() });
    await writeFile(join(metaRoot, 'a'), '{"Size"');
    await record('b', true);
    await look(open('a', 'b'), 0);
    assert.equal(await look([], 0), 2);
    await record('a', false);
    assert.equal(await look([], 0), 1);
    await rm(join(metaRoot, 'b'));
    assert.equal(await look([], 0), 0);
  });

  it('does not count twice when it is opened again', async () => {
    const look = createClosingFiles({ metaRoot, clock: createManualClock() });
    await record('a', true);
    await look(open('a'), 0);
    await look([], 0);
    assert.equal(await look(open('a'), 0), 0);
  });

  it('counts for a minute at most: a disk that takes no record keeps nothing unsynced for ever', async () => {
    const clock = createManualClock();
    const look = createClosingFiles({ metaRoot, clock });
    await record('a', true);
    await look(open('a'), 0);
    assert.equal(await look([], 0), 1);
    await clock.advance(60_001);
    assert.equal(await look([], 0), 0);
  });
});
