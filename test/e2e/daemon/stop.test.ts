// @start 5
/** The end of the daemon with files that are not on the NAS yet. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { DaemonTraits } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const MB = 1_000_000;
const FILES = 10;
/** The pure transfer of 200 MB at 10 MB/s takes 20 s. */
const BRISK_MS = 80_000;

/** Slow lines are what is waited for: one for each. */
describe('the end of the daemon', { concurrency: true }, () => {
  const rclone = currentRclone();

  describe('with rclone', { concurrency: 1 }, () => {
    let scratch: Scratch;
    let nas: Nas;
    let files: Files;
    let slow: Relay;

    before(async () => {
      scratch = await createScratch('stop');
      nas = await Nas.create(scratch, { files: { 'in/x.txt': 3 } });
      slow = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 10 * MB });
      files = new Files(scratch);
    });
    after(() => scratch.close());

    const keeper = async (name: string, sections: NonNullable<DaemonTraits['sections']>): Promise<Daemon> => {
      await mkdir(nas.path(name), { recursive: true });
      const daemon = await Daemon.create(scratch, {
        name,
        rclone,
        connections: [nas.connection('slow', slow.port)],
        shares: [{ name: 'work', connection: 'slow', remote_path: name }],
        sections,
      });
      await daemon.start();
      await daemon.healthy();
      return daemon;
    };

    const dirty = async (daemon: Daemon, megabytes: number): Promise<Map<string, string>> => {
      const sums = new Map<string, string>();
      for (let index = 0; index < FILES; index += 1) {
        sums.set(
          `f${index}.bin`,
          await files.write(`${daemon.mountPoint('work')}/f${index}.bin`, (megabytes / FILES) * MB, 60_000),
        );
      }
      return sums;
    };

    // Far beyond what a stop may take: what waits is told to begin.
    const writeBack = '90s';

    it('on SIGTERM with 200 MB dirty and a NAS of 10 MB/s exits 0 with all of it on the NAS', async (t) => {
      const daemon = await keeper('all', {
        mount: { write_back: writeBack },
        supervisor: { stop_timeout: '3m' },
      });
      const sums = await dirty(daemon, 200);
      await until(
        'the status counts the files',
        async () => {
          const { shares, all_synced: allSynced } = await daemon.status();
          return !allSynced && (shares[0]?.dirty_count ?? 0) > 0;
        },
        { timeoutMs: 20_000 },
      );
      const start = performance.now();
      assert.deepEqual(await daemon.stop('SIGTERM', 150_000), { code: 0, signal: null });
      const tookMs = Math.round(performance.now() - start);
      t.diagnostic(`took ${tookMs} ms`);
      assert.ok(tookMs < BRISK_MS, 'files waited for their write-back delay');
      assert.deepEqual(await nas.checksums('all'), sums);
      assert.equal(await isMounted(daemon.mountPoint('work')), false);
    });

    it('with stop_timeout = "2s" exits 75, lists what is left, and the next start brings it up', async () => {
      const daemon = await keeper('rest', {
        supervisor: { stop_timeout: '2s' },
        mount: { write_back: '8s' },
      });
      const sums = await dirty(daemon, 60);
      const start = performance.now();
      const end = await daemon.stop('SIGTERM', 30_000);
      assert.deepEqual(end, { code: 75, signal: null });
      assert.ok(performance.now() - start < 20_000, `took ${performance.now() - start} ms`);
      const said = `${await daemon.output()}${await daemon.log()}`;
      const missing = [...sums.keys()].filter((name) => said.includes(name));
      assert.ok(missing.length > 0, `no file that is left is named:\n${said.slice(-1500)}`);
      assert.equal(await isMounted(daemon.mountPoint('work')), false);
      await daemon.start();
      await until(
        'all is on the NAS',
        async () =>
          [...(await nas.checksums('rest'))].filter(([name, sum]) => sums.get(name) === sum).length ===
          sums.size,
        { timeoutMs: 60_000, everyMs: 500 },
      );
      await daemon.synced(60_000);
    });

    it('a second SIGTERM leaves at once and keeps what is left', async () => {
      const daemon = await keeper('twice', {
        supervisor: { stop_timeout: '5m' },
        mount: { write_back: '10s' },
      });
      const sums = await dirty(daemon, 50);
      const start = performance.now();
      daemon.signal('SIGTERM');
      await until('the drain has begun', async () => /drain/i.test(await daemon.log()), {
        timeoutMs: 30_000,
        everyMs: 20,
      });
      const end = await daemon.stop('SIGTERM', 10_000);
      assert.notEqual(end.code, null);
      assert.ok(performance.now() - start < 10_000);
      await daemon.start();
      await until(
        'all is on the NAS',
        async () =>
          [...(await nas.checksums('twice'))].filter(([name, sum]) => sums.get(name) === sum).length ===
          sums.size,
        { timeoutMs: 120_000, everyMs: 500 },
      );
    });
  });
});
