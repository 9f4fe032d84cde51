import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { HeldVersions } from '../../../../plugins/mount/layer/held-versions.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { Timelines } from '../../../../plugins/mount/layer/upper/timelines.ts';

const PID = 77;

describe('what the lower layer showed before its listings were read again', () => {
  let proc: string;
  let clock: ReturnType<typeof createManualClock>;
  /** Of the file that is open, and of the one beside it. */
  let bytes: number;
  let failure: string | undefined;
  let isBeside: boolean;
  let active: readonly string[];
  let listed: string[];
  let unlisted: string | undefined;
  let held: HeldVersions;
  let entries: ReturnType<typeof collectLog>['entries'];
  const fd = (name: string): string => join(proc, String(PID), 'fd', name);
  const file = (name: string): RemoteEntry => ({ name, kind: 'file', version: { bytes, modifiedMs: 5 } });

  beforeEach(async () => {
    proc = await mkdtemp(join(tmpdir(), 'mk-proc-'));
    await mkdir(join(proc, String(PID), 'fd'), { recursive: true });
    await symlink('/low/tree/reel', fd('3'));
    await symlink('/elsewhere/x', fd('4'));
    clock = createManualClock();
    [bytes, failure, isBeside, active, listed] = [1, undefined, true, [], []];
    unlisted = undefined;
    const collected = collectLog();
    entries = collected.entries;
    held = new HeldVersions({
      pid: PID,
      place: '/low',
      below: async (paths) => ({
        found: new Map(failure === undefined ? paths.map((path) => [path, file('reel')]) : []),
        failed: new Map(failure === undefined ? [] : paths.map((path) => [path, failure!])),
      }),
      listBelow: async (folders) => {
        if (unlisted !== undefined) throw new Error(unlisted);
        listed.push(...folders);
        const entries = [file('reel'), ...(isBeside ? [file('beside')] : [])];
        return { found: new Map(folders.map((folder) => [folder, entries])), failed: new Map() };
      },
      active: async () => active,
      clock,
      log: collected.log,
      proc,
    });
  });
  afterEach(() => rm(proc, { recursive: true, force: true }));

  const read = (folders: readonly string[] = []): Promise<void> =>
    held.during(folders, async () => void (bytes += 1));
  const at = (path: string, ms?: number): number | null | undefined => {
    const entry = held.of(path, ms);
    return entry?.kind === 'file' ? entry.version.bytes : (entry as null | undefined);
  };
  const reel = (ms?: number): number | null | undefined => at('tree/reel', ms);

  it('is nothing in a folder that hides it, for what users make there until they see it', async () => {
    const before = clock.now();
    const end = held.overNothing(['tree']);
    await clock.advance(1_000);
    await read(['tree']);
    assert.equal(at('tree/beside', clock.now() + 5_000), null);
    await clock.advance(1_000);
    end();
    assert.deepEqual([at('tree/beside', before), at('tree/beside', clock.now())], [null, null]);
    assert.equal(at('tree/beside', clock.now() + 1), undefined);
  });

  describe('of files that somebody has open', () => {
    it('is the version from before, for what was opened before the listing was there', async () => {
      const opened = clock.now();
      await clock.advance(1_000);
      await held.during([], async () => {
        bytes = 2;
        assert.equal(reel(clock.now() + 5_000), 1, 'while it is being read');
      });
      assert.deepEqual([reel(opened), reel(clock.now()), reel(clock.now() + 1)], [1, 1, undefined]);
      assert.equal(held.of('elsewhere/x', opened), undefined);
    });

    it('is told apart by the time of opening, when listings were read several times', async () => {
      await read();
      const first = clock.now();
      await clock.advance(1_000);
      await read();
      assert.deepEqual([reel(first), reel(first + 1), reel(clock.now() + 1)], [1, 2, undefined]);
    });

    it('is kept for a while after the file was closed, and for as long as it is open', async () => {
      await read();
      const opened = clock.now();
      await clock.advance(3_600_000);
      await read();
      assert.equal(reel(opened), 1);
      await rm(fd('3'));
      await read();
      assert.equal(reel(clock.now()), 2);
      await clock.advance(600_001);
      await read();
      assert.equal(reel(opened), undefined);
    });

    it('keeps the listing from being read when it cannot be found out', async () => {
      failure = 'gone';
      await assert.rejects(read(), /cannot be found out: gone/);
      assert.equal(bytes, 1);
    });

    it('is no reason to doubt a deletion that was made since', async () => {
      await read();
      assert.equal(reel(), 1, 'made at an unknown time');
      await clock.advance(1);
      held.learnt(clock.now());
      assert.equal(reel(), undefined);
      assert.equal(reel(0), 1, 'a copy that was begun before may still arrive');
    });

    it('is that of the listing for one that was opened while it was read', async () => {
      await rm(fd('3'));
      await held.during(['tree'], async () => {
        bytes = 2;
        await symlink('/low/tree/reel', fd('5'));
      });
      const opened = clock.now();
      await clock.advance(1);
      held.learnt(clock.now());
      assert.equal(reel(opened), 1);
    });
  });

  describe('of folders that were read again', () => {
    beforeEach(() => rm(fd('3')));

    it('is what stood in them, and that nothing did, for changes that are not on record', async () => {
      isBeside = false;
      await held.during(['tree'], async () => {
        [bytes, isBeside] = [2, true];
      });
      assert.deepEqual([reel(), at('tree/beside')], [1, null]);
      assert.equal(at('other/reel'), undefined);
      assert.equal(reel(clock.now() + 1), undefined, 'made when the other one showed');
      await clock.advance(1);
      held.learnt(clock.now());
      assert.deepEqual([reel(), at('tree/beside')], [undefined, undefined]);
    });

    it('tells nothing of what left the upper folder afterwards, nor of what is in a folder that did', async () => {
      isBeside = false;
      await held.during(['tree', 'other'], async () => {
        [bytes, isBeside] = [2, true];
      });
      held.shown(['tree/beside', 'other']);
      assert.deepEqual([at('tree/beside'), at('other/reel'), reel()], [undefined, undefined, 1]);
      await clock.advance(10);
      await held.during(['tree'], async () => void (bytes = 3));
      assert.equal(at('tree/beside'), 2, 'others changed it since');
    });

    it('is remembered for a while only, as is what has left the upper folder, where nothing is learnt', async () => {
      await read(['tree']);
      held.shown(['tree/beside', 'other']);
      assert.equal(held.size, 3);
      await clock.advance(600_002);
      held.shown(['tree/reel']);
      assert.equal(held.size, 1);
    });

    it('is held where people are at work, when anything may be read again', async () => {
      active = ['', 'tree'];
      await held.during('anywhere', async () => void (bytes += 1));
      assert.deepEqual([listed, at('reel'), reel()], [['', 'tree'], 1, 1]);
    });

    it('is not held where it cannot be listed, and a line in the log tells why', async () => {
      unlisted = 'the NAS is away';
      await read(['tree']);
      assert.deepEqual([bytes, reel()], [2, undefined]);
      assert.deepEqual(
        entries.map(({ attempt, err }) => [attempt, (err as Error).message]),
        [['list what the lower layer shows', unlisted]],
      );
    });

    it('is let go of after a while, though changes can never be found out', async () => {
      await read(['tree']);
      await clock.advance(600_001);
      await read(['elsewhere']);
      assert.equal(reel(), undefined);
    });
  });
});

describe('a timeline of what was at a path', () => {
  it('takes no more room when the same is held again and again, and lasts until its last holder ends', () => {
    const lines = new Timelines<string>((a, b) => a === b);
    const first = lines.hold('a', 'one');
    for (let time = 1; time <= 1_000; time += 1) lines.hold('a', 'one')(time);
    assert.equal(lines.at('a', 5_000), 'one', 'the first holder has not ended');
    first(2_000);
    assert.deepEqual([lines.at('a', 2_000), lines.at('a', 2_001)], ['one', undefined]);
    lines.hold('a', 'two')(3_000);
    lines.hold('a', 'one')(4_000);
    assert.deepEqual([lines.at('a', 0), lines.at('a', 2_001), lines.at('a', 3_001)], ['one', 'two', 'one']);
    assert.equal(lines.size, 3);
    lines.drop(3_000);
    assert.deepEqual([lines.size, lines.at('a', 0)], [2, 'two']);
    lines.drop(5_000, new Set(['a']));
    assert.equal(lines.size, 2);
    lines.drop(5_000);
    assert.equal(lines.size, 0);
  });
});
