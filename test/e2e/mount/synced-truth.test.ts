/**
 * The status says what is so, and everybody else the same: `all_synced` and `dirty_count` also for files that are open
 * and for a share that is not mounted; no share is said to work that cannot be listed.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { WebhookReceiver } from '../../support/webhooks/webhook-receiver.ts';

const rclone = currentRclone();

describe('what the status says about files', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;
  let receiver: WebhookReceiver;
  const told = (): readonly string[] =>
    receiver.taken.map(({ body }) => body.type).filter((type) => type.startsWith('share.'));
  const heals = async (): Promise<string | undefined> =>
    /^mountkeeper_share_heals_total\{share="work"\} (\d+)/m.exec((await daemon.get('/metrics')).text)?.[1];

  before(async () => {
    scratch = await createScratch('truth');
    nas = await Nas.create(scratch, { protocol: 'webdav', files: { 'x.bin': 50_000 } });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    files = new Files(scratch);
    receiver = await WebhookReceiver.start(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas', relay.port), nas.connection('straight')],
      shares: [
        { name: 'work', connection: 'nas' },
        { name: 'fixed', connection: 'straight', read_only: true },
      ],
      sections: {
        supervisor: { stop_timeout: '1s' },
        notifications: { webhook_url: receiver.url, allow_private: true, cache_threshold_pct: 0 },
      },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const work = (path: string): string => `${daemon.mountPoint('work')}/${path}`;

  it('says synced when nothing waits, not while a file is open with changes, and again when it is up', async () => {
    await daemon.synced(60_000);
    const close = await files.holdForWriting(work('held.bin'), 10_000);
    await until(
      'the open file is seen',
      async () => !(await daemon.status()).all_synced && (await daemon.share('work')).dirty_count > 0,
      { timeoutMs: 20_000 },
    );
    await sleep(4_000);
    assert.equal((await daemon.status()).all_synced, false, 'still open');
    await close();
    await daemon.synced(60_000);
    assert.equal((await daemon.share('work')).dirty_count, 0);
    assert.ok(await nas.has('held.bin'));
  });

  it('refuses writes on a read-only share', async () => {
    assert.equal(await files.checksum(`${daemon.mountPoint('fixed')}/x.bin`), await nas.checksum('x.bin'));
    await assert.rejects(files.write(`${daemon.mountPoint('fixed')}/new.bin`, 10), { code: 'EROFS' });
  });

  it('counts the dirty files of a share that is not mounted, and uploads them when it is again', async () => {
    await relay.cut();
    const sum = await files.write(work('waits.bin'), 300_000);
    assert.deepEqual(await daemon.stop('SIGTERM', 30_000), { code: 75, signal: null });
    // Something else lies at its mount point: it cannot be mounted, whether its NAS answers or not.
    await runClient('sh', ['-c', 'chattr -i "$1"; chmod 755 "$1"; touch "$1/other"', 'sh', work('')]);
    await daemon.start();
    await until('the share is failed', async () => (await daemon.share('work')).health === 'failed', {
      timeoutMs: 30_000,
    });
    const waits = async (): Promise<void> => {
      await until('its file is counted', async () => (await daemon.share('work')).dirty_count === 1, {
        timeoutMs: 20_000,
      });
      assert.equal((await daemon.status()).all_synced, false);
    };
    await waits();
    assert.equal((await daemon.share('work')).mounted, false);
    await until('its failure is told', () => told().includes('share.failed'), { timeoutMs: 20_000 });
    await rm(work('other'));
    await daemon.request('POST', '/api/reconnect/work');
    await until('it is mounted, with its NAS away', async () => (await daemon.share('work')).mounted, {
      timeoutMs: 30_000,
    });
    await waits();
    // Mounted for what waits; its path cannot be listed.
    assert.equal((await daemon.share('work')).health, 'probing');
    assert.match((await daemon.share('work')).health_message ?? '', /does not answer|nothing can be read/);
    assert.equal(await files.checksum(work('waits.bin')), sum);
    // Long enough for whatever could be told of it.
    await sleep(4_000);
    assert.deepEqual([told(), await heals()], [['share.failed'], '0'], 'nobody says that it works');
    assert.equal((await daemon.share('work')).health, 'probing');
    await relay.restore();
    await until(
      'the file is up',
      async () => (await nas.has('waits.bin')) && (await nas.checksum('waits.bin')) === sum,
      { timeoutMs: 30_000 },
    );
    await daemon.synced(60_000);
    await until('it is told that it works', () => told().length === 2, { timeoutMs: 10_000 });
    assert.deepEqual([told(), await heals()], [['share.failed', 'share.healed'], '1']);
    assert.equal((await daemon.share('work')).health, 'healthy');
  });
});
