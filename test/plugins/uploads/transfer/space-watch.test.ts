import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { NEVER_FULL, SpaceWatch } from '../../../../plugins/uploads/transfer/space-watch.ts';
import { turn } from '../../../support/platform/wait.ts';

const MIB = 1_048_576;

describe('the room on the disk of upper folders', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mk-space-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const open = () => {
    const clock = createManualClock();
    const world = { clock, free: 100 * MIB, looks: [] as string[] };
    const measure = async (path: string) => {
      world.looks.push(path);
      return { bavail: world.free, bsize: 1 };
    };
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 100) {
        await clock.advance(100);
        await turn();
      }
    };
    const watched = async (name: string) => {
      const path = join(folder, name);
      mkdirSync(path);
      const watch = new SpaceWatch(path, clock, measure);
      const end = new AbortController();
      const ended = watch.watch(end.signal);
      // The kernel says on which disk it lies.
      await watch.look();
      return { path, watch, end: () => (end.abort(), ended) };
    };
    return { world, pass, watched };
  };

  it('is looked at by one of them for all, for as long as there is one', async () => {
    const { world, pass, watched } = open();
    const [a, b] = [await watched('a'), await watched('b')];
    await pass(500);
    world.looks.length = 0;
    await pass(2_000);
    assert.deepEqual(world.looks, [a.path, a.path, a.path, a.path]);
    await a.end();
    world.looks.length = 0;
    await pass(2_000);
    assert.deepEqual([...new Set(world.looks)], [b.path]);
    assert.ok(world.looks.length >= 3, String(world.looks.length));
    await b.end();
    world.looks.length = 0;
    await pass(2_000);
    assert.deepEqual(world.looks, []);
  });

  it('tells since when files may be cut off, by what any of them has seen', async () => {
    const { world, pass, watched } = open();
    const [a, b] = [await watched('a'), await watched('b')];
    await pass(3_000);
    assert.equal(await b.watch.look(), NEVER_FULL);
    const roomyMs = world.clock.now();
    world.free = MIB;
    await pass(3_000);
    const isCut = await b.watch.look();
    const at = (ms: number): bigint => BigInt(Math.trunc(ms)) * 1_000_000n;
    assert.deepEqual(
      [isCut(at(roomyMs - 5_000)), isCut(at(roomyMs)), isCut(at(roomyMs + 3_000))],
      [false, true, true],
    );
    world.free = 100 * MIB;
    assert.equal(await a.watch.look(), NEVER_FULL);
    await Promise.all([a.end(), b.end()]);
  });
});
