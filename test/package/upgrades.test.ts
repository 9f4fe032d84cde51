/**
 * `npm run package-test`: the released package installed over another version twenty times, up and down in turn, on a
 * machine with systemd, while a client of SMB copies 1 GB, one of NFS reads and a program writes. Not one call fails.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unlessControlGroups } from '../runner/skips.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { asVersion, buildDeb } from '../support/package/build-packages.ts';
import { installUnderLoad, isUp, setUpShare } from '../support/package/upgrade-under-load.ts';
import { SystemdMachine } from '../support/package/systemd-machine.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';

/** Fewer for a short trial. Each takes a minute or so. */
const TIMES = Number(process.env['MOUNTKEEPER_UPGRADES'] ?? 20);
const BIG_MIB = 1_024;
const NFS = '[nfs]\nenabled = true\nallowed_clients = ["127.0.0.1"]\n';

describe('twenty upgrades under load', { skip: unlessControlGroups }, () => {
  let scratch: Scratch;
  let machine: SystemdMachine;
  before(
    async () => {
      scratch = await createScratch('upgrades');
      const current = await buildDeb(scratch.path('packages'), '--fast');
      machine = await SystemdMachine.boot(scratch);
      await machine.put(currentRclone(), '/usr/local/bin/rclone');
      await machine.put(current, '/srv/0.1.0.deb');
      await machine.put(await asVersion(current, '0.0.9', scratch.path('former')), '/srv/0.0.9.deb');
    },
    { timeout: 300_000 },
  );
  after(() => scratch.close());

  it('begin with the former version, over SMB and NFS', { timeout: 600_000 }, async () => {
    await machine.must('dpkg --install /srv/0.0.9.deb', 300_000);
    await setUpShare(machine, BIG_MIB);
    await machine.must(`printf '${NFS.replaceAll('\n', '\\n')}' >>/etc/mountkeeper/mountkeeper.toml`);
    await isUp(machine, '0.0.9');
    await until(
      'NFS serves',
      async () => (await machine.run("nfs-ls 'nfs://127.0.0.1/files?version=4'")).code === 0,
      { timeoutMs: 60_000, everyMs: 500 },
    );
  });

  for (let time = 1; time <= TIMES; time += 1) {
    it(`fail no call of any client, time ${time}`, { timeout: 600_000 }, async (test) => {
      const version = time % 2 === 1 ? '0.1.0' : '0.0.9';
      await installUnderLoad(machine, `/srv/${version}.deb`, ['read', 'write', 'nfs']);
      await isUp(machine, version);
      const seen = await machine.must('cd /load; echo $(wc -l <reads) $(wc -l <nfs-reads) $(cat writes)');
      const [smb, nfs, writes] = seen.split(' ');
      assert.ok(Number(nfs) > 0);
      test.diagnostic(`${smb} copies of 1 GiB over SMB, ${nfs} reads over NFS, ${writes} files written`);
    });
  }
});
