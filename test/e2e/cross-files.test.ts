/** What one protocol's client writes, all others read, and so does the NAS. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Files } from '../support/files.ts';
import { Nas } from '../support/nas.ts';
import { rclones } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { CLIENTS } from '../support/clients/clients.ts';
import { openHouse, shownToAll } from '../support/clients/house.ts';
import type { House } from '../support/clients/house.ts';
import { layDownFiles } from '../support/clients/names.ts';
import { localFile } from '../support/exports/exports.ts';

const SHARE = '照片 Photos';
const OVERWRITTEN = Array.from({ length: 50 }, (_, index) => `overwrites ${index}.bin`);

/** The current one serves WebDAV from inside a mount's own process, the other one beside it. */
for (const { label, command } of rclones()) {
  describe(`the same files over every protocol, by ${label}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let house: House;
    let files: Files;
    let sums: ReadonlyMap<string, string>;

    before(async () => {
      scratch = await createScratch('cross-files');
      nas = await Nas.create(scratch, { files: Object.fromEntries(CLIENTS.flatMap(({ label }) => OVERWRITTEN.map((name) => [`photos/${label} ${name}`, 5_000]))) });
      files = new Files(scratch);
      await mkdir(scratch.path('sent'));
      sums = await layDownFiles(scratch.path('sent'));
      house = await openHouse(scratch, { rclone: command, connections: [nas.connection('nas')], shares: [{ name: SHARE, connection: 'nas', remote_path: 'photos' }] });
      await house.daemon.healthy();
      await shownToAll(house.access, SHARE);
    });
    after(() => scratch.close());

    const folderOf = (label: string): string => `from ${label}`;

    it('takes 200 files from each client', async (t) => {
      for (const client of CLIENTS) {
        const start = performance.now();
        await client.upload(house.access, scratch.path('sent'), { share: SHARE, folder: folderOf(client.label) });
        t.diagnostic(`${client.label}: ${Math.round(performance.now() - start)} ms`);
      }
      const status = await house.daemon.status();
      assert.ok((status.shares[0]?.dirty_count ?? 0) > 0 && !status.all_synced, 'what was written is seen to wait');
    });

    for (const writer of CLIENTS) {
      for (const reader of CLIENTS.filter((client) => client !== writer)) {
        it(`gives ${reader.label} clients what ${writer.label} clients wrote, byte for byte`, async () => {
          assert.deepEqual(differing(await reader.download(house.access, { share: SHARE, folder: folderOf(writer.label) }, [...sums.keys()]), sums), []);
        });
      }
    }

    it('has 50 files that each client overwrites on the NAS within 15 s', async (t) => {
      const sums = new Map<string, string>();
      await Promise.all(CLIENTS.map(async (client) => {
        const session = await client.session(house.access, SHARE);
        const { path, sum } = await localFile(scratch, `over ${client.label}`, 20_000);
        for (const name of OVERWRITTEN) {
          await session.put(path, `${client.label} ${name}`);
          sums.set(`photos/${client.label} ${name}`, sum);
        }
        session.close();
      }));
      const start = performance.now();
      await until('all are on the NAS', async () => {
        for (const [path, sum] of sums) if ((await nas.checksum(path)) !== sum) return false;
        return true;
      }, { timeoutMs: 15_000, everyMs: 200 });
      t.diagnostic(`there ${Math.round(performance.now() - start)} ms after the last was written`);
    });

    it('shows it all in the mount, and on the NAS once the queue is seen to be empty', async (t) => {
      const start = performance.now();
      await house.daemon.synced(90_000);
      t.diagnostic(`synced ${Math.round(performance.now() - start)} ms later`);
      assert.deepEqual((await house.daemon.status()).shares.map(({ dirty_count, errored_files }) => [dirty_count, errored_files]), [[0, 0]]);
      for (const { label } of CLIENTS) {
        const here = new Map<string, string>();
        for (const path of sums.keys()) here.set(path, await files.checksum(`${house.daemon.mountPoint(SHARE)}/${folderOf(label)}/${path}`));
        assert.deepEqual(differing(here, sums), [], `in the mount, written over ${label}`);
        assert.deepEqual(differing(await nas.checksums(`photos/${folderOf(label)}`), sums), [], `on the NAS, written over ${label}`);
      }
    });
  });
}

/** The first ten, both ways: what is missing, what differs and what is there in excess. */
function differing(found: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>): string[] {
  const paths = new Set([...found.keys(), ...wanted.keys()]);
  return [...paths].filter((path) => found.get(path) !== wanted.get(path)).map((path) => `${path.slice(0, 60)}: ${found.get(path)?.slice(0, 80) ?? 'missing'}`).sort().slice(0, 10);
}
