/**
 * A share with a write layer on the real daemon: what users write comes to the NAS, whatever happens
 * meanwhile.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { CLIENTS } from '../support/clients/protocols.ts';
import { startWithExports, shownToAll } from '../support/clients/daemon-with-exports.ts';
import type { DaemonWithExports } from '../support/clients/daemon-with-exports.ts';
import type { Daemon } from '../support/daemon/daemon.ts';
import { localFile, runClient } from '../support/exports/client-programs.ts';
import { ShareWorker } from '../support/write-layer/share-worker.ts';
import { differences, treeOf } from '../support/write-layer/folder-tree.ts';
import { checksumOf, Nas } from '../support/nas/nas.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';

const SHARE = 'team 照片';
const SYNCED_MS = 90_000;
const rclone = currentRclone();
/** Those that can come in so far. */
const clients = CLIENTS.filter(({ protocol }) => protocol !== 'nfs');

for (const protocol of ['sftp', 'webdav'] as const) {
  describe(`a share with a write layer and a NAS over ${protocol}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let house: DaemonWithExports;
    let daemon: Daemon;
    let root: string;
    let model: string;
    let hands: ShareWorker;

    const run = async (folder: string, script: string): Promise<void> => {
      const { code, output } = await runClient('sh', ['-c', `cd "${folder}" && { ${script}\n}`], 60_000);
      assert.equal(code, 0, `${script}: ${output}`);
    };
    /** On the share and on the model of it. */
    const both = async (script: string): Promise<void> => {
      await run(root, script);
      await run(model, script);
    };
    const assertOnNas = (when: string): void =>
      assert.deepEqual(differences(treeOf(nas.path('team')), treeOf(model)), [], when);
    /** As soon as the status says so, not later. */
    const synced = async (): Promise<void> => {
      await daemon.synced(SYNCED_MS);
      assertOnNas('though all_synced is true');
    };

    before(async () => {
      scratch = await createScratch('layer-daemon');
      const files = {
        'team/a.bin': 300_000,
        'team/b.txt': 2_000,
        'team/tree/c': 100,
        'team/tree/sub/d': 200,
        'team/gone/e': 10,
        'team/gone/f/g': 10,
        'team/here/h': 5,
      };
      nas = await Nas.create(scratch, { protocol, files });
      model = scratch.path('model');
      hands = new ShareWorker(scratch);
      cpSync(nas.path('team'), model, { recursive: true });
      house = await startWithExports(scratch, {
        rclone,
        connections: [nas.connection('nas')],
        shares: [{ name: SHARE, connection: 'nas', remote_path: 'team' }],
      });
      ({ daemon } = house);
      root = daemon.mountPoint(SHARE);
      await daemon.healthy();
    });
    after(() => scratch.close());

    it('brings up what programs do with files', async () => {
      await both(`
        printf new > new; printf more >> a.bin; printf XX | dd of=b.txt bs=1 seek=1000 conv=notrunc status=none
        truncate -s 50 here/h
        cp a.bin saved.tmp; mv saved.tmp a.bin; mv b.txt renamed.txt
        printf over > over; printf under > under; mv under over; rm new
        printf 'ü："$\\n' > 'strange ü：$ name'; : > empty`);
      await synced();
      await both(
        'truncate -s 10 a.bin; printf end >> a.bin; mv a.bin x; mv renamed.txt a.bin; mv x renamed.txt; rm empty',
      );
      await synced();
    });

    it('brings up what programs do with folders', async () => {
      await both(`
        mkdir made made/deep made/left; printf 1 > made/deep/1; rmdir made/left
        mv tree moved; printf 2 > moved/2; rm moved/c; rm -r gone
        mkdir gone; printf anew > gone/anew; mv here there; mv there/h there/i`);
      await synced();
      await both(
        'mv moved tree; mv tree/sub sub; mv gone tree/; mv made tree/made; rm tree/made/deep/1; mkdir -p e/m/p/t/y',
      );
      await synced();
      await both('rm -r tree sub; mv there tree');
      await synced();
    });

    it('takes what clients of every protocol write', async () => {
      await shownToAllOf();
      for (const client of clients) {
        const from = scratch.path(`from ${client.protocol}`);
        mkdirSync(`${from}/sub`, { recursive: true });
        await writeFile(`${from}/one`, client.label.repeat(10_000));
        await writeFile(`${from}/sub/two.txt`, client.label);
        const folder = `by ${client.protocol}`;
        await client.upload(house.access, from, { share: SHARE, folder });
        cpSync(from, `${model}/${folder}`, { recursive: true });
        const session = await client.session(house.access, SHARE);
        const { path, sum } = await localFile(scratch, `put-${client.protocol}`, 5_000_000);
        await session.put(path, `put ${client.protocol}`);
        assert.equal(await session.get(`put ${client.protocol}`), sum, client.label);
        cpSync(path, `${model}/put ${client.protocol}`);
        session.close();
        const sums = await client.download(house.access, { share: SHARE, folder }, ['one', 'sub/two.txt']);
        assert.equal(sums.get('one'), await checksumOf(`${from}/one`), client.label);
      }
      await synced();
    });

    it('goes on after a kill -9 of rclone under open files', async () => {
      const writing = runClient(
        'sh',
        [
          '-c',
          `exec 3>"${root}/held"; for n in 1 2 3 4 5 6 7 8; do printf "line $n\\n" >&3; sleep 0.5; done`,
        ],
        30_000,
      );
      await until(
        'it is being written',
        async () => (await runClient('test', ['-s', `${root}/held`])).code === 0,
        { timeoutMs: 10_000 },
      );
      const pid = await daemon.rclonePid(SHARE);
      process.kill(pid, 'SIGKILL');
      assert.equal((await writing).code, 0);
      await writeFile(`${model}/held`, [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `line ${n}\n`).join(''));
      await until('another rclone serves the share', async () => (await daemon.rclonePid(SHARE)) !== pid, {
        timeoutMs: 20_000,
      });
      await daemon.healthy();
      await both('printf after > after-kill; mv over over2');
      await synced();
    });

    it('goes on after a kill -9 of the daemon, with the mount that was there', async () => {
      await both(
        'mkdir many; for n in $(seq 60); do printf "$n" > many/$n; done; mv many/1 many/one; rm many/2; mv tree tree2',
      );
      const pid = await daemon.rclonePid(SHARE);
      await daemon.end();
      await run(root, 'printf meanwhile > meanwhile');
      await run(model, 'printf meanwhile > meanwhile');
      await daemon.start();
      await daemon.healthy();
      assert.equal(await daemon.rclonePid(SHARE), pid);
      await synced();
    });

    it('keeps all of it while the NAS is away, says so, and brings it up when it is back', async () => {
      await nas.stop();
      await until(
        'the share says so',
        async () => /does not answer/.test((await daemon.share(SHARE)).health_message ?? ''),
        { timeoutMs: 30_000 },
      );
      await both(
        'printf away > away; printf more >> away; mv many/3 many/three; rm many/4; mkdir during; printf 5 > many/5',
      );
      await until('they wait', async () => (await daemon.share(SHARE)).dirty_count >= 4, {
        timeoutMs: 10_000,
      });
      assert.equal((await daemon.status()).all_synced, false);
      await run(root, '[ "$(cat away)" = awaymore ]');
      await nas.start();
      await synced();
    });

    it('ends with exit 0 when all is on the NAS, and shows it again at the next start', async () => {
      await both(
        'for n in $(seq 30); do printf "again $n" > many/$n; done; rm -r during; mkdir last; printf l > last/l',
      );
      assert.equal((await daemon.stop('SIGTERM', SYNCED_MS)).code, 0);
      assertOnNas('though the daemon ended with 0');
      assert.deepEqual(await readdir(root), []);
      await daemon.start();
      await daemon.healthy();
      assert.deepEqual(differences(await hands.tree(root), treeOf(model)), []);
      await synced();
    });

    it('does not end with exit 0 while something waits', async () => {
      // The listing is read anew a little after the last upload.
      await sleep(4_000);
      await nas.stop();
      await both('printf waits > waits');
      await daemon.submit(daemon.text({ sections: { supervisor: { stop_timeout: '3s' } } }));
      assert.notEqual((await daemon.stop('SIGTERM', 40_000)).code, 0);
      await nas.start();
      await daemon.start();
      await synced();
    });

    async function shownToAllOf(): Promise<void> {
      if (clients.length === CLIENTS.length) await shownToAll(house.access, SHARE);
      for (const client of clients)
        await until(`${client.label} shows it`, () => client.isShown(house.access, SHARE), {
          timeoutMs: 30_000,
        });
    }

    it('has left nothing of its own on the NAS', async () => {
      await mkdir(nas.path('team'), { recursive: true });
      assert.deepEqual(
        Object.keys(treeOf(nas.path('team'))).filter((path) =>
          /mountkeeper|partial|conflict|recovered/.test(path),
        ),
        [],
      );
    });
  });
}
