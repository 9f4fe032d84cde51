import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { pino } from 'pino';
import type { RemoteFailure } from 'mountkeeper';
import { RcRefusal } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import { RootCheck } from '../../../../plugins/mount/outage/root-check.ts';
import { RootNames } from '../../../../plugins/mount/outage/root-names.ts';

const MISSING = /^its path is not there; nothing is sent until it is back: /;
const NOT_FOUND = 'error in ListJSON: directory not found';

async function createWorld({ fs = 'nas:p', isBucket = false, tookMs = 0 } = {}) {
  const clock = createManualClock();
  const log = pino({ level: 'silent' });
  const world = {
    clock,
    looks: 0,
    back: 0,
    /** What rclone refuses with. */
    refusal: undefined as string | undefined,
    /** Folders at the top. */
    there: ['a', 'b', 'c'],
    /** Lets what was begun end. */
    settle: async () => {
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    },
    after: async (ms: number): Promise<string | undefined> => {
      await clock.advance(ms);
      root.answered();
      await world.settle();
      return root.trouble;
    },
    admitted: async (): Promise<RemoteFailure | undefined> => {
      const admitted = root.admit(new AbortController().signal).then(
        () => undefined,
        (error: unknown) => error as RemoteFailure,
      );
      await world.settle();
      await clock.advance(tookMs);
      return admitted;
    },
  };
  const rc: RcClient = {
    call: async <T>(path: string, _body: unknown, signal: AbortSignal) => {
      if (path === 'operations/fsinfo') return { Features: { BucketBased: isBucket } } as T;
      world.looks += 1;
      const [{ refusal }, list] = [world, world.there.map((Name) => ({ Name, IsDir: true }))];
      if (tookMs > 0) await clock.sleep(tookMs, signal);
      if (refusal !== undefined) throw new RcRefusal(refusal);
      return { list } as T;
    },
    close: () => undefined,
  };
  const names = new RootNames({ file: '/proc/no/such/file', identity: 'x', clock, log });
  // From here on, no look waits for a disk.
  await names.read();
  const root: RootCheck = new RootCheck({
    shareName: 's',
    rc,
    fs,
    names,
    clock,
    log,
    onBack: () => (world.back += 1),
  });
  return { root, world };
}

describe("a look at a share's folder", () => {
  it('has been answered also where the remote falls silent right after', async () => {
    const { root, world } = await createWorld();
    assert.equal(root.hasAnswered, false);
    assert.equal(await world.admitted(), undefined);
    root.silent();
    assert.equal(root.hasAnswered, true, 'what was read then can be used');
  });

  it('tells since when the remote has been silent, and when it last was for as long as a boot takes', async () => {
    const { root, world } = await createWorld();
    const { clock } = world;
    const silentFor = async (ms: number): Promise<number> => {
      const fromMs = clock.monotonic();
      root.silent();
      await clock.advance(ms);
      root.silent();
      assert.equal(root.silentSinceMs, fromMs);
      root.answered();
      assert.equal(root.silentSinceMs, undefined);
      return fromMs;
    };
    assert.equal(root.silentSinceMs, undefined);
    await silentFor(14_000);
    assert.equal(root.lastSilence, undefined, 'a slow one');
    const fromMs = await silentFor(20_000);
    const lastSilence = { fromMs, toMs: clock.monotonic() };
    await silentFor(3_000);
    assert.deepEqual(root.lastSilence, lastSilence);
  });

  it('knows whether it was listed, which silence and a missing folder are not', async () => {
    const { root, world } = await createWorld();
    const listed: boolean[] = [root.isListed];
    for (const refusal of [
      undefined,
      NOT_FOUND,
      'error in ListJSON: dial tcp: connection refused',
      undefined,
    ]) {
      world.refusal = refusal;
      await root.look().catch(() => undefined);
      listed.push(root.isListed);
    }
    assert.deepEqual(listed, [false, true, false, false, true]);
  });

  it('is made at once, then every minute, tells of a path that is gone, and soon of its return', async () => {
    const { world } = await createWorld();
    world.refusal = NOT_FOUND;
    assert.match((await world.after(0)) ?? '', MISSING);
    world.refusal = 'error in ListJSON: dial tcp: connection refused';
    assert.match((await world.after(5_000)) ?? '', MISSING, 'silence tells nothing');
    world.refusal = undefined;
    assert.equal(await world.after(5_000), undefined);
    assert.equal(world.back, 1);
    assert.equal(world.looks, 3);
    world.refusal = NOT_FOUND;
    assert.equal(await world.after(59_000), undefined);
    assert.match((await world.after(1_000)) ?? '', MISSING);
    world.refusal = 'error in ListJSON: permission denied';
    assert.match((await world.after(5_000)) ?? '', MISSING, 'nor does another answer');
    assert.equal(world.looks, 5);
  });

  it('is made before a call to the remote, where the last one is not of just now', async () => {
    const { world } = await createWorld();
    assert.equal(await world.admitted(), undefined);
    assert.equal(await world.admitted(), undefined);
    assert.equal(world.looks, 1);
    world.refusal = NOT_FOUND;
    await world.clock.advance(2_000);
    const failure = await world.admitted();
    assert.match(failure?.message ?? '', MISSING);
    assert.equal(failure?.remote, 'silent', 'all that waits waits on');
    world.refusal = undefined;
    await world.clock.advance(5_000);
    assert.equal(await world.admitted(), undefined);
    world.refusal = 'dial tcp: i/o timeout';
    await world.clock.advance(2_000);
    assert.match((await world.admitted())?.message ?? '', /does not answer in time/);
  });

  it('is made less often where it takes long', async () => {
    const { world } = await createWorld({ tookMs: 1_000 });
    await world.admitted();
    await world.clock.advance(18_000);
    await world.admitted();
    assert.equal(world.looks, 1);
    await world.clock.advance(2_000);
    await world.admitted();
    assert.equal(world.looks, 2);
  });

  it('is made at once after a silence, and where the remote says that a folder is not there', async () => {
    const { root, world } = await createWorld();
    await world.after(0);
    root.silent();
    await world.after(10);
    assert.equal(world.looks, 2);
    root.suspect();
    await world.settle();
    assert.equal(world.looks, 3);
    await world.after(100);
    assert.equal(world.looks, 3);
  });

  it('tells of a folder that has lost all its names, until they are back or are given up', async () => {
    const { root, world } = await createWorld();
    root.accept();
    await world.after(0);
    world.there = [];
    assert.match(
      (await world.after(60_000)) ?? '',
      /^its folder has lost all names that it had \('a', 'b', 'c'\); nothing .* `mountkeeper reconnect s`$/,
    );
    world.there = ['b'];
    assert.equal(await world.after(5_000), undefined);
    world.there = ['d', 'e'];
    assert.equal(await world.after(60_000), undefined, 'one may be renamed by others');
    world.there = ['f'];
    assert.notEqual(await world.after(60_000), undefined);
    root.accept();
    assert.equal(root.trouble, undefined);
    assert.equal(await world.after(60_000), undefined);
  });

  it('does not take a missing folder as meant', async () => {
    const { root, world } = await createWorld();
    world.refusal = NOT_FOUND;
    await world.after(0);
    root.accept();
    assert.match(root.trouble ?? '', MISSING);
  });

  it('takes what was changed here for no loss, and is made again soon after', async () => {
    const { root, world } = await createWorld();
    await world.after(0);
    await root.changing(['a', 'b'], () => Promise.resolve());
    await root.changing(['c'], () => Promise.reject(new Error('refused'))).catch(() => undefined);
    world.there = [];
    assert.equal(await world.after(3_000), undefined);
    assert.equal(world.looks, 2);
    await world.after(3_000);
    assert.equal(world.looks, 2);
  });

  it('goes on where its listing takes longer than anybody waits, on a remote that answers others', async () => {
    const { root, world } = await createWorld({ tookMs: 90_000 });
    const admitted = root.admit(new AbortController().signal).then(
      () => 'admitted',
      (error: unknown) => (error as Error).message,
    );
    await world.settle();
    await world.clock.advance(30_000);
    root.answered();
    await world.clock.advance(60_000);
    assert.equal(await admitted, 'admitted');
    assert.equal(await world.admitted(), undefined);
    assert.equal(world.looks, 1);
  });

  it('says nothing of a folder in a bucket, which is gone with the last thing in it', async () => {
    const { root, world } = await createWorld({ fs: 'nas:bucket/photos', isBucket: true });
    await world.after(0);
    world.there = [];
    assert.equal(await world.after(60_000), undefined);
    world.refusal = NOT_FOUND;
    assert.equal(await world.after(60_000), undefined);
    assert.equal(world.looks, 0, 'no list is asked for');
    assert.equal(root.isListed, false);
    const bucket = await createWorld({ fs: 'nas:bucket', isBucket: true });
    bucket.world.refusal = NOT_FOUND;
    assert.match((await bucket.world.after(0)) ?? '', MISSING);
  });
});
