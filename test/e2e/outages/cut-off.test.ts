// @load quiet
// @start 2
/** The NAS is cut off for a minute while somebody works. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files, lostFiles, readLedger } from '../../support/platform/file-worker.ts';
import type { Tally } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const CUT_MS = 60_000;

/** The minute passes for both at once. */
describe(`a NAS cut off for ${CUT_MS / 1000} s`, { concurrency: true }, () => {
  const rclone = currentRclone();

  describe('with rclone', () => {
    let scratch: Scratch;
    let nas: Nas;
    let relay: Relay;
    let daemon: Daemon;
    let files: Files;

    before(async () => {
      scratch = await createScratch('cut');
      nas = await Nas.create(scratch, { files: { 'cached.bin': 3_000_000, 'in/x.txt': 3 } });
      relay = await Relay.start(scratch, { targetPort: nas.port });
      files = new Files(scratch);
      daemon = await Daemon.create(scratch, {
        rclone,
        connections: [nas.connection('nas', relay.port)],
        shares: [{ name: 'work', connection: 'nas' }],
      });
      await daemon.start();
      await daemon.healthy();
    });
    after(() => scratch.close());

    it('lets writers and cached reads go on, says so within 10 s, and uploads all on its return', async (t) => {
      const mount = daemon.mountPoint('work');
      const sum = await nas.checksum('cached.bin');
      assert.equal(await files.checksum(`${mount}/cached.bin`), sum);
      await files.ask({ op: 'list', path: `${mount}/in` });
      const ledger = scratch.path('ledger');
      const writer = files.begin<{ written: number; failed: number }>({
        op: 'write-many',
        dir: `${mount}/in`,
        ledger,
        bytes: 400_000,
        count: 100_000,
        pauseMs: 700,
      });
      const reader = files.begin<Tally>({ op: 'read-again', path: `${mount}/cached.bin`, sha256: sum });
      await sleep(2_000);

      await relay.cut();
      const cutAt = performance.now();
      await until(
        'the status says that the NAS is away',
        async () => {
          const share = await daemon.share('work');
          return /does not answer/.test(share.health_message ?? '') && !(await daemon.status()).all_synced;
        },
        { timeoutMs: 10_000 },
      );
      t.diagnostic(
        `said so after ${Math.round(performance.now() - cutAt)} ms: ${(await daemon.share('work')).health_message}`,
      );
      const atCut = (await readLedger(ledger)).closed.size;
      while (performance.now() - cutAt < CUT_MS) {
        assert.equal((await daemon.status()).all_synced, false);
        await sleep(1_000);
      }
      const { closed, failed } = await readLedger(ledger);
      const since = `${closed.size - atCut} files since the cut; ${JSON.stringify(failed).slice(0, 300)}`;
      assert.ok(closed.size > atCut + 20, `the writer went on: ${since}`);
      await until('what waits is counted', async () => (await daemon.share('work')).dirty_count > 20, {
        timeoutMs: 20_000,
      });

      await relay.restore();
      const backAt = performance.now();
      await until(
        'the share is healthy and nothing is wrong',
        async () => {
          const share = await daemon.share('work');
          return share.health === 'healthy' && share.health_message === null;
        },
        { timeoutMs: 60_000 },
      );
      await writer.stop();
      assert.deepEqual((await reader.stop()).failures, []);
      await daemon.synced(90_000);
      const written = await readLedger(ledger);
      t.diagnostic(
        `all ${written.closed.size} files up ${Math.round(performance.now() - backAt)} ms after the return`,
      );
      assert.deepEqual(written.failed, []);
      assert.deepEqual(lostFiles(written, await nas.checksums('in')), []);
    });
  });
});
