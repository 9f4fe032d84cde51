import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { HeldVersions } from '../../../../plugins/mount/layer/held-versions.ts';

const PID = 77;

describe('versions of files that were open when their listing was read again', () => {
  let proc: string;
  let clock: ReturnType<typeof createManualClock>;
  let bytes: number;
  let failure: string | undefined;
  let held: HeldVersions;
  const fd = (name: string): string => join(proc, String(PID), 'fd', name);

  beforeEach(async () => {
    proc = await mkdtemp(join(tmpdir(), 'mk-proc-'));
    await mkdir(join(proc, String(PID), 'fd'), { recursive: true });
    await symlink('/low/tree/reel', fd('3'));
    await symlink('/elsewhere/x', fd('4'));
    clock = createManualClock();
    [bytes, failure] = [1, undefined];
    held = new HeldVersions({
      pid: PID,
      place: '/low',
      below: async (paths) => ({
        found: new Map(
          failure === undefined
            ? paths.map((path): [string, RemoteEntry] => [
                path,
                { name: 'reel', kind: 'file', version: { bytes, modifiedMs: 5 } },
              ])
            : [],
        ),
        failed: new Map(failure === undefined ? [] : paths.map((path) => [path, failure!])),
      }),
      clock,
      proc,
    });
  });
  afterEach(() => rm(proc, { recursive: true, force: true }));

  const read = (): Promise<void> => held.during(async () => void (bytes += 1));
  const at = (ms: number): number | undefined => held.of('tree/reel', ms)?.bytes;

  it('are those from before, for what was opened before the listing was there', async () => {
    const opened = clock.now();
    await clock.advance(1_000);
    await held.during(async () => {
      bytes = 2;
      assert.equal(at(clock.now() + 5_000), 1, 'while it is being read');
    });
    assert.deepEqual([at(opened), at(clock.now()), at(clock.now() + 1)], [1, 1, undefined]);
    assert.equal(held.of('elsewhere/x', opened), undefined);
  });

  it('are told apart by the time of opening, when listings were read several times', async () => {
    await read();
    const first = clock.now();
    await clock.advance(1_000);
    await read();
    assert.deepEqual([at(first), at(first + 1), at(clock.now() + 1)], [1, 2, undefined]);
  });

  it('are kept for a while after the file was closed, and for as long as it is open', async () => {
    await read();
    const opened = clock.now();
    await clock.advance(3_600_000);
    await read();
    assert.equal(at(opened), 1);
    await rm(fd('3'));
    await read();
    assert.equal(at(clock.now()), 2);
    await clock.advance(600_001);
    await read();
    assert.equal(at(opened), undefined);
  });

  it('that cannot be found out keep the listing from being read', async () => {
    failure = 'gone';
    await assert.rejects(read(), /cannot be found out: gone/);
    assert.equal(bytes, 1);
  });
});
