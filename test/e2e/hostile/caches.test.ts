/** What becomes of files that wait when the cache itself is moved, left behind, or claimed by two. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { runs } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { DaemonTraits } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { LoopDisk, NoLoopDevice } from '../../support/mount/loop-disk.ts';
import { SKIPS, unlessRoot } from '../../runner/skips.ts';

/**
 * Bytes per second: all goes at once, or 50 kB take longer than a stop waits and a probe still gets through.
 */
const [LINE, THIN_LINE] = [50_000_000, 8_000];

describe('a cache in which files wait', () => {
  let scratch: Scratch;
  let nas: Nas;
  let files: Files;
  before(async () => {
    scratch = await createScratch('caches');
    nas = await Nas.create(scratch, { files: { 'x.bin': 1_000 } });
    files = new Files(scratch);
  });
  after(() => scratch.close());

  const create = (name: string, sections: DaemonTraits['sections'] = {}, port = nas.port): Promise<Daemon> =>
    Daemon.create(scratch, {
      name,
      connections: [nas.connection('nas', port)],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { supervisor: { stop_timeout: '500ms' }, mount: { write_back: '5m' }, ...sections },
    });
  const soon = (daemon: Daemon, dir: string): string =>
    daemon.text({ sections: { cache: { dir }, mount: { write_back: '1s' } } });

  it('uploads from its new folder when it is moved, and is counted and named when it is left behind', async () => {
    const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
    const daemon = await create('moved', {}, relay.port);
    await daemon.start();
    await daemon.healthy();
    // What is written now is not up before the daemon has ended.
    relay.setRate(THIN_LINE);
    const moved = await files.write(`${daemon.mountPoint('work')}/moved.bin`, 50_000);
    assert.equal((await daemon.stop()).code, 75);
    await rename(daemon.cacheDir, `${daemon.cacheDir}-2`);
    await daemon.writeConfig(soon(daemon, `${daemon.cacheDir}-2`));
    relay.setRate(LINE);
    await daemon.start();
    await daemon.synced(60_000);
    assert.equal(await nas.checksum('moved.bin'), moved);

    const late = daemon.text({ sections: { cache: { dir: `${daemon.cacheDir}-2` } } });
    await daemon.writeConfig(late);
    await runs(daemon, late);
    relay.setRate(THIN_LINE);
    const left = await files.write(`${daemon.mountPoint('work')}/left.bin`, 50_000);
    const isCounted = async (): Promise<boolean> =>
      (await daemon.share('work')).dirty_count === 1 && (await daemon.share('work')).health === 'healthy';
    await daemon.writeConfig(soon(daemon, `${daemon.cacheDir}-3`));
    await until(
      'the change waits for the file',
      async () => /new settings wait/.test((await daemon.share('work')).health_message ?? ''),
      { timeoutMs: 20_000 },
    );
    await daemon.request('POST', '/api/reconnect/work');
    await until(
      'the file left behind is counted, once',
      async () =>
        (await isCounted()) && /former settings/.test((await daemon.share('work')).health_message ?? ''),
      { timeoutMs: 20_000 },
    );
    assert.equal((await daemon.stop()).code, 75);
    await daemon.start();
    await daemon.healthy();
    await until('it is counted by the next daemon, too', isCounted, { timeoutMs: 30_000 });
    assert.equal((await daemon.status()).all_synced, false);
    relay.setRate(LINE);
    await daemon.writeConfig(soon(daemon, `${daemon.cacheDir}-2`));
    await until(
      'it is up',
      async () => (await nas.has('left.bin')) && (await nas.checksum('left.bin')) === left,
      { timeoutMs: 30_000 },
    );
    await daemon.synced(60_000);
    assert.equal((await daemon.stop()).code, 0);
  });

  it('is used by one rclone: a second daemon with the same cache folder says whose it is', async () => {
    const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
    const first = await create('first', {}, relay.port);
    await first.start();
    await first.healthy();
    await files.write(`${first.mountPoint('work')}/once.bin`, 50_000);
    const second = await create('second', { cache: { dir: first.cacheDir } }, relay.port);
    await second.start();
    // It tries again and again, and says so only while it is failed.
    const refusal = await until(
      'the second refuses',
      async () => {
        const { health, health_message: message } = await second.share('work');
        return health === 'failed' ? message : undefined;
      },
      { timeoutMs: 30_000 },
    );
    assert.match(refusal, new RegExp(`process ${await first.rclonePid('work')}.*${first.cacheDir}/work`));
    await until(
      'the first goes on',
      async () => {
        const { health, dirty_count: dirty } = await first.share('work');
        return health === 'healthy' && dirty === 1;
      },
      { timeoutMs: 20_000 },
    );
    // Neither a daemon nor an rclone of the first is left, but its share is still mounted.
    const rclone = await first.rclonePid('work');
    await first.end();
    process.kill(rclone, 'SIGKILL');
    const inUse = await until(
      'the second refuses the cache of a share that is still mounted',
      async () => {
        const { health_message: message } = await second.share('work');
        return message?.includes('in use by another daemon') ? message : undefined;
      },
      { timeoutMs: 30_000 },
    );
    assert.match(inUse, new RegExp(`the share's cache ${first.cacheDir}.* is in use by another daemon`));
    await first.start();
    await first.healthy();
    // What waits there stays, and goes on with whoever has the cache.
    const waits = (daemon: Daemon): Promise<unknown> =>
      until('it is counted', async () => (await daemon.share('work')).dirty_count === 1, {
        timeoutMs: 20_000,
      });
    await waits(first);
    // Whoever stops uploads what it can: the file is left behind only on a line that is too thin for it.
    relay.setRate(THIN_LINE);
    assert.equal((await first.stop()).code, 75);
    relay.setRate(LINE);
    await second.healthy(['work'], 60_000);
    await waits(second);
    await second.stop();
  });

  it('of a share whose NAS is away is left alone by a second daemon that leads to another NAS', async () => {
    const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
    const other = await Nas.create(scratch, { name: 'other-nas', files: { 'other.bin': 1_000 } });
    const sections = { mount: { write_back: '1s' } };
    const first = await create('living', sections, relay.port);
    await first.start();
    await first.healthy();
    const sent = await files.write(`${first.mountPoint('work')}/sent.bin`, 1_000);
    await first.synced(60_000);
    // While its NAS is away no rclone of the first works on the cache, and nothing waits there.
    await relay.cut();
    process.kill(await first.rclonePid('work'), 'SIGKILL');
    const second = await create('intruding', { ...sections, cache: { dir: first.cacheDir } }, other.port);
    await second.start();
    const said = await until(
      'the second refuses the cache',
      async () => {
        const { health_message: message } = await second.share('work');
        return message?.includes('in use by another daemon') ? message : undefined;
      },
      { timeoutMs: 60_000 },
    );
    assert.match(said, new RegExp(`the share's cache ${first.cacheDir}/work.* is in use by another daemon`));
    await relay.restore();
    await first.healthy([], 60_000);
    await first.synced(60_000);
    assert.equal(await nas.checksum('sent.bin'), sent);
    const more = await files.write(`${first.mountPoint('work')}/more.bin`, 1_000);
    await first.synced(60_000);
    assert.equal(await nas.checksum('more.bin'), more);
    assert.deepEqual(await readdir(other.dir), ['other.bin']);
    assert.equal((await first.stop()).code, 0);
    await second.healthy([], 60_000);
    assert.equal(await nas.checksum('sent.bin'), sent);
    await second.stop();
  });

  it('that was put in the place of a living share is not looked at by the daemon that finds the share', async () => {
    const daemon = await create('copied', { mount: { write_back: '1s' } });
    await daemon.start();
    await daemon.healthy();
    const kept = await files.write(`${daemon.mountPoint('work')}/kept.bin`, 1_000);
    await daemon.synced(60_000);
    await daemon.end();
    // As where its disk was unmounted, and an older copy lies below.
    const layer = join(daemon.cacheDir, 'work', 'layer');
    await rename(layer, `${layer}-former`);
    for (const name of ['upper', 'work', 'aside']) await mkdir(`${layer}/${name}`, { recursive: true });
    await cp(`${layer}-former/records`, `${layer}/records`, { recursive: true });
    await daemon.start();
    await daemon.healthy([], 60_000);
    // It goes to where the daemon looks.
    const late = await files.write(`${daemon.mountPoint('work')}/late.bin`, 1_000);
    await until('it is up', () => nas.has('late.bin'), { timeoutMs: 60_000 });
    await daemon.synced(60_000);
    assert.equal(await nas.checksum('late.bin'), late);
    assert.equal(await nas.checksum('kept.bin'), kept);
    await daemon.stop();
  });

  /** A disk of its own for the cache. Undefined where this machine can make none: the test is skipped. */
  const diskFor = async (daemon: Daemon, t: TestContext): Promise<LoopDisk | undefined> => {
    try {
      return await LoopDisk.create(scratch, daemon.cacheDir);
    } catch (error) {
      if (!(error instanceof NoLoopDevice)) throw error;
      t.diagnostic(error.message);
      t.skip(SKIPS.loopDevice.reason);
      return undefined;
    }
  };

  it(
    'on a disk that is not mounted at a start: nobody knows what waits there, and nothing is synced',
    { skip: unlessRoot },
    async (t) => {
      const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
      const daemon = await create('unplugged', {}, relay.port);
      const disk = await diskFor(daemon, t);
      if (disk === undefined) return;
      await daemon.start();
      await daemon.healthy();
      relay.setRate(THIN_LINE);
      await files.write(`${daemon.mountPoint('work')}/waits.bin`, 50_000);
      assert.equal((await daemon.stop()).code, 75);
      await disk.unplug();
      await daemon.start();
      const said = await until(
        'the share says why it is down',
        async () => {
          const { health, health_message: message } = await daemon.share('work');
          return health === 'failed' ? message : undefined;
        },
        { timeoutMs: 30_000 },
      );
      assert.match(
        said,
        /The disk of the cache folder .* is not mounted at .*: what waits there .* not known/,
      );
      assert.equal((await daemon.status()).all_synced, false);
      await daemon.stop();
      await disk.plug();
      relay.setRate(LINE);
      await daemon.start();
      await daemon.healthy();
      await until('it is counted again', async () => (await daemon.share('work')).dirty_count === 1, {
        timeoutMs: 20_000,
      });
      await daemon.stop();
    },
  );

  it(
    'that a disk is mounted over: nothing is synced while something waits below, and nothing is said otherwise',
    { skip: unlessRoot },
    async (t) => {
      const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
      const daemon = await create('covered', {}, relay.port);
      await daemon.start();
      await daemon.healthy();
      relay.setRate(THIN_LINE);
      const waits = await files.write(`${daemon.mountPoint('work')}/covered.bin`, 50_000);
      assert.equal((await daemon.stop()).code, 75);
      const disk = await diskFor(daemon, t);
      if (disk === undefined) return;
      await daemon.start();
      const said = await until(
        'the share says why it is down',
        async () => {
          const { health, health_message: message } = await daemon.share('work');
          return health === 'failed' ? message : undefined;
        },
        { timeoutMs: 30_000 },
      );
      assert.match(said, /The cache folder .* is on another disk than before.* is hidden and not known/);
      assert.equal((await daemon.status()).all_synced, false);
      assert.equal((await daemon.stop()).code, 75);
      await disk.unplug();
      await daemon.writeConfig(soon(daemon, daemon.cacheDir));
      relay.setRate(LINE);
      await daemon.start();
      await daemon.synced(60_000);
      assert.equal(await nas.checksum('covered.bin'), waits);
      assert.equal((await daemon.stop()).code, 0);
      await disk.plug();
      await daemon.start();
      await daemon.healthy();
      await daemon.synced(60_000);
      assert.equal((await daemon.stop()).code, 0);
    },
  );

  it(
    'on a disk that turned read-only: the status says so until the disk is mended',
    { skip: unlessRoot },
    async (t) => {
      const daemon = await create('read-only');
      const disk = await diskFor(daemon, t);
      if (disk === undefined) return;
      await daemon.start();
      await daemon.healthy();
      await disk.turnReadOnly();
      await until(
        'the status tells',
        async () => /cache is read-only/.test((await daemon.share('work')).health_message ?? ''),
        { timeoutMs: 30_000 },
      );
      await daemon.request('POST', '/api/reconnect/work');
      await until(
        'it says what is in the way',
        async () =>
          /the cache folder .* cannot be used: .*read-only/.test(
            (await daemon.share('work')).health_message ?? '',
          ),
        { timeoutMs: 30_000 },
      );
      assert.equal((await daemon.status()).all_synced, false);
      await daemon.stop();
      await disk.mend();
      await daemon.start();
      await daemon.healthy();
      await until(
        'nothing is wrong any more',
        async () => (await daemon.share('work')).health_message === null,
        { timeoutMs: 20_000 },
      );
      assert.equal((await daemon.stop()).code, 0);
    },
  );

  it('behind a symbolic link is watched as well; a mount point behind one is refused', async () => {
    const daemon = await create('linked');
    for (const name of ['cache', 'mnt']) await mkdir(scratch.path(`real-${name}`));
    await symlink(scratch.path('real-cache'), daemon.cacheDir);
    await symlink(scratch.path('real-mnt'), `${daemon.mountRoot}-link`);
    await daemon.writeConfig(
      daemon.text({
        shares: [
          { name: 'work', connection: 'nas' },
          { name: 'astray', connection: 'nas', mount_point: `${daemon.mountRoot}-link/astray` },
        ],
      }),
    );
    await daemon.start();
    await daemon.healthy(['work']);
    const close = await files.holdForWriting(`${daemon.mountPoint('work')}/linked.bin`, 10_000);
    await until('the open file is seen', async () => (await daemon.share('work')).dirty_count === 1, {
      timeoutMs: 20_000,
    });
    const refusal = new RegExp(`through a symbolic link.* as ${scratch.path('real-mnt')}/astray`);
    await until(
      'the other mount point is refused',
      async () => refusal.test((await daemon.share('astray')).health_message ?? ''),
      { timeoutMs: 30_000 },
    );
    await close();
  });
});
