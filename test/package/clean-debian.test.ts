/**
 * `npm run package-test`: what a stranger does. A Debian that has nothing, with a systemd of its own; the package
 * installed by apt, set up by flags, a file read and written over SMB by a real client, and there again after a power
 * cut. apt asks the network before the machine boots; the machine itself has none.
 */
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { unlessControlGroups } from '../runner/skips.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { buildDeb } from '../support/package/build-packages.ts';
import { cleanDebian, inside } from '../support/package/clean-debian.ts';
import { SystemdMachine } from '../support/package/systemd-machine.ts';
import { isUp, NAS, setUpShare, SMB } from '../support/package/upgrade-under-load.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';

const APT = 'DEBIAN_FRONTEND=noninteractive apt-get -q --yes install';
const INSTALL_PACKAGE = `${APT} /srv/mountkeeper.deb`;
/** The server that the package only suggests, and a client. */
const INSTALL_SAMBA = `${APT} --no-install-recommends samba samba-vfs-modules smbclient`;

describe('the package on a clean Debian with systemd', { skip: unlessControlGroups }, () => {
  let scratch: Scratch;
  let machine: SystemdMachine;
  before(
    async () => {
      scratch = await createScratch('clean-debian');
      const debian = scratch.path('debian');
      await cleanDebian(debian, 'systemd');
      await copyFile(await buildDeb(scratch.path('packages'), '--fast'), `${debian}/srv/mountkeeper.deb`);
      await copyFile(currentRclone() ?? '/usr/bin/rclone', `${debian}/usr/local/bin/rclone`);
      const fetch = [INSTALL_PACKAGE, INSTALL_SAMBA].map((install) => `${install} --download-only`);
      await inside(debian, ['apt-get -q update', ...fetch].join(' && '));
      machine = await SystemdMachine.boot(scratch, debian);
    },
    { timeout: 1_500_000 },
  );
  after(() => scratch.close());

  const isServed = (): Promise<unknown> =>
    until('SMB serves', async () => (await machine.run(`${SMB} ls`)).code === 0, { timeoutMs: 60_000 });

  it('is installed by apt, and its service runs', async () => {
    await machine.must(INSTALL_PACKAGE, 300_000);
    assert.equal(
      await machine.must('systemctl is-active mountkeeper; systemctl is-enabled mountkeeper'),
      'active\nenabled',
    );
    await machine.must(INSTALL_SAMBA, 300_000);
    await machine.must('systemctl disable --quiet --now smbd nmbd');
  });

  it('is set up by flags, and a real client reads and writes over SMB', async () => {
    await setUpShare(machine, 3);
    await isUp(machine, '0.1.0');
    await isServed();
    await machine.must(
      "cd /tmp; echo 'over SMB' >written.txt; " +
        `${SMB} 'put written.txt; get big.bin'; cmp big.bin /srv/nas/files/big.bin`,
    );
    await machine.must('mountkeeper wait --synced --timeout 60s');
    assert.equal(await machine.must('cat /srv/nas/files/written.txt'), 'over SMB');
  });

  it('is there again after a power cut, and so is the file', async () => {
    await machine.restartAfterPowerCut();
    await machine.must(NAS);
    await isUp(machine, '0.1.0');
    await isServed();
    assert.equal(
      await machine.must(`${SMB} 'get written.txt /tmp/read' >/dev/null; cat /tmp/read`),
      'over SMB',
    );
  });
});
