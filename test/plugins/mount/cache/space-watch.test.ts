import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import { createSpaceWatch } from '../../../../plugins/mount/cache/space-watch.ts';

const MB = 1_048_576;

function bench(): {
  look: (isOutOfSpace?: boolean) => Promise<string | undefined>;
  pass: (ms: number) => unknown;
  state: { free: number | undefined; looks: number };
} {
  const clock = createManualClock();
  const state: { free: number | undefined; looks: number } = { free: 500 * MB, looks: 0 };
  const measure = (): Promise<number> => {
    state.looks += 1;
    return state.free === undefined ? Promise.reject(new Error('gone')) : Promise.resolve(state.free);
  };
  const watch = createSpaceWatch({
    cacheDir: '/c',
    minFreeBytes: () => 100 * MB,
    clock,
    log: pino({ level: 'silent' }),
    measure,
  });
  return { look: (isOutOfSpace = false) => watch(isOutOfSpace), pass: (ms) => clock.advance(ms), state };
}

describe('the watch over the space for a cache', () => {
  it('says that the disk is full while it is, and not a look longer', async () => {
    const { look, pass, state } = bench();
    assert.equal(await look(), undefined);
    state.free = 0;
    await pass(5_000);
    assert.match((await look()) ?? '', /the disk of the cache is full/);
    state.free = 50 * MB;
    await pass(5_000);
    assert.equal(await look(), undefined);
  });

  it('says that the disk takes no writes, as a failing one does, until it does again', async () => {
    const clock = createManualClock();
    let isReadOnly = false;
    const look = createSpaceWatch({
      cacheDir: '/c',
      minFreeBytes: () => MB,
      clock,
      log: pino({ level: 'silent' }),
      measure: () => Promise.resolve(500 * MB),
      isReadOnly: () => Promise.resolve(isReadOnly),
    });
    const said: (string | undefined)[] = [];
    for (isReadOnly of [false, true, false]) {
      said.push(await look(false));
      await clock.advance(5_000);
    }
    assert.deepEqual([said[0], said[2]], [undefined, undefined]);
    assert.match(said[1] ?? '', /cache is read-only: reads and writes of this share fail/);
  });

  it('believes rclone when it says so', async () => {
    const { look } = bench();
    assert.match((await look(true)) ?? '', /full/);
    assert.equal(await look(false), undefined);
  });

  it('says that little is free only when clearing the cache had its time', async () => {
    const { look, pass, state } = bench();
    await look();
    state.free = 50 * MB;
    await pass(60_000);
    assert.equal(await look(), undefined);
    await pass(80_000);
    assert.match((await look()) ?? '', /only 50.* is free .* cache\.min_free_space \(100/);
    state.free = 200 * MB;
    await pass(5_000);
    assert.equal(await look(), undefined);
  });

  it('asks the disk no more often than every 5 s', async () => {
    const { look, pass, state } = bench();
    for (let times = 0; times < 20; times += 1) {
      await look();
      await pass(500);
    }
    assert.equal(state.looks, 2);
  });

  it('says nothing when the disk cannot be asked', async () => {
    const { look, pass, state } = bench();
    state.free = undefined;
    await look();
    await pass(200_000);
    assert.equal(await look(), undefined);
  });
});
