/** A share over NFS on a cache disk that fills up while a client writes. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { detachAll, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { commit, writeUnstable } from '../../support/clients/nfs-file.ts';
import { NfsClient } from '../../support/clients/nfs-session.ts';
import { NfsFault } from '../../support/clients/nfs-wire.ts';
import { runClient } from '../../support/exports/client-programs.ts';

/** I/O error, no space, quota: NFS4ERR_IO, NFS4ERR_NOSPC, NFS4ERR_DQUOT. */
const FULL = new Set([5, 28, 69]);
const MB = 1_000_000;

describe('shares over NFS whose cache has no room left', () => {
  it('take no more, keep and name what they took, and upload all of it when asked to', async () => {
    const scratch = await createScratch('nfs-full');
    try {
      const disk = scratch.path('disk');
      await mkdir(disk);
      assert.equal(
        (await runClient('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'mountkeeper-test', disk])).code,
        0,
      );
      scratch.defer(async () =>
        detachAll((await mountsBelow(disk)).filter(({ fsType }) => fsType === 'tmpfs')),
      );
      const nas = await Nas.create(scratch, { files: { 'team/a': 1_000 } });
      const port = await freePort();
      const daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas')],
        shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
        sections: {
          nfs: { enabled: true, port, allowed_clients: ['127.0.0.1'] },
          cache: { dir: `${disk}/cache`, min_free_space: '4M' },
        },
      });
      await daemon.start();
      const client = await until('a client comes in', () => NfsClient.connect(port), { timeoutMs: 30_000 });
      const file = await until('the share is shown', () => client.open('team/grows.bin', 'make'), {
        timeoutMs: 30_000,
      });
      const taken: Buffer[] = [];
      const fill = async (): Promise<void> => {
        for (;;) {
          const data = randomBytes(MB);
          const { bytes } = await writeUnstable(client, file, taken.length * MB, data);
          taken.push(data.subarray(0, bytes));
          if (bytes < data.length) await writeUnstable(client, file, taken.length * MB, data);
        }
      };
      const isFull = (error: unknown): boolean => error instanceof NfsFault && FULL.has(error.status);
      await assert.rejects(fill(), isFull);
      await assert.rejects(writeUnstable(client, file, taken.length * MB, randomBytes(MB)), isFull);
      await commit(client, file);
      await until(
        'it is told that the disk is full',
        async () => / is full/.test((await daemon.share('team')).health_message ?? ''),
        { timeoutMs: 60_000 },
      );
      assert.equal((await runClient('mount', ['-o', 'remount,size=200m', disk])).code, 0);
      client.close();
      const whole = Buffer.concat(taken);
      assert.ok(whole.length > 8 * MB);
      process.kill(await daemon.rclonePid('team'), 'SIGKILL');
      // Nobody knows whether the client had more to write (docs/write-layer.md).
      const reason = async (): Promise<string | undefined> => {
        const { stdout } = await daemon.cli('queue', 'team', '--json');
        const { entries } = JSON.parse(stdout) as { entries: readonly { path: string; reason: string }[] };
        return entries.find(({ path }) => path === 'grows.bin')?.reason;
      };
      await until('it is kept and named', async () => /disk was full/.test((await reason()) ?? ''), {
        timeoutMs: 60_000,
      });
      assert.deepEqual([(await daemon.status()).all_synced, await nas.has('team/grows.bin')], [false, false]);
      const { code, stderr } = await daemon.cli('queue', 'team', 'grows.bin', '--send');
      assert.equal(code, 0, stderr);
      await until(
        'all is on the NAS',
        async () => (await readFile(nas.path('team/grows.bin'))).subarray(0, whole.length).equals(whole),
        { timeoutMs: 60_000, everyMs: 200 },
      );
    } finally {
      await scratch.close();
    }
  });
});
