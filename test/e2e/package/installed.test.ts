// @load loud
/**
 * The Debian package on a machine of its own with a real systemd: installed, set up by flags, used over SMB, upgraded
 * under load, taken back from a version that does not come up, and there again after a power cut.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { unlessControlGroups } from '../../runner/skips.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { asVersion, builtDeb } from '../../support/package/build-packages.ts';
import { installUnderLoad, isUp, NAS, setUpShare, SMB } from '../../support/package/upgrade-under-load.ts';
import { SystemdMachine } from '../../support/package/systemd-machine.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

/** Its daemon does not start; all other subcommands do. */
async function breakRelease(main: string): Promise<void> {
  const broken = "if (process.argv[2] === 'run') throw new Error('a broken release');";
  await writeFile(main, `${broken}\n${await readFile(main, 'utf8')}`);
}

describe('the Debian package on a machine with systemd', { skip: unlessControlGroups }, () => {
  let scratch: Scratch;
  let machine: SystemdMachine;

  before(
    async () => {
      scratch = await createScratch('installed');
      const current = await builtDeb(scratch.path('packages'));
      machine = await SystemdMachine.boot(scratch);
      await machine.put(currentRclone(), '/usr/local/bin/rclone');
      await machine.put(current, '/srv/current.deb');
      await machine.put(await asVersion(current, '0.0.9', scratch.path('former')), '/srv/former.deb');
      const broken = await asVersion(current, '9.9.9', scratch.path('broken'), (tree) =>
        breakRelease(`${tree}/usr/lib/mountkeeper/dist/core/main.js`),
      );
      await machine.put(broken, '/srv/broken.deb');
    },
    { timeout: 300_000 },
  );
  after(() => scratch.close());

  const notices = (): Promise<string> => machine.must('mountkeeper status 2>&1');

  it('starts its service when it is installed', async () => {
    await machine.must('dpkg --install /srv/former.deb', 300_000);
    assert.equal(
      await machine.must('systemctl is-active mountkeeper; systemctl is-enabled mountkeeper'),
      'active\nenabled',
    );
    assert.match(await notices(), /No shares|no shares/);
  });

  it('is set up by flags, and a real client reads and writes over SMB', async () => {
    await setUpShare(machine, 3);
    await isUp(machine, '0.0.9');
    await until('SMB serves', async () => (await machine.run(`${SMB} ls`)).code === 0, {
      timeoutMs: 30_000,
    });
    await machine.must(
      "cd /tmp; echo 'over SMB' >written.txt; " +
        `${SMB} 'put written.txt; get big.bin'; cmp big.bin /srv/nas/files/big.bin`,
    );
    await machine.must('mountkeeper wait --synced --timeout 60s');
    assert.equal(await machine.must('cat /srv/nas/files/written.txt'), 'over SMB');
    assert.equal(await machine.must('systemctl is-active mountkeeper-share@files.target'), 'active');
  });

  it('is taken back from a version that does not come up, and no client has a call that fails', async () => {
    const said = await installUnderLoad(machine, '/srv/broken.deb');
    assert.match(said, /version 9\.9\.9 did not come up; the one before runs instead of it/);
    await isUp(machine, '0.0.9');
    assert.match(
      await notices(),
      /version 9\.9\.9 did not come up after its installation, so 0\.0\.9 runs instead/,
    );
  });

  it('is there again after a power cut, with what users wrote, by the version that came up', async () => {
    await machine.must("printf 'not yet up' >/mnt/mountkeeper/files/last.txt; systemctl stop nas");
    await machine.restartAfterPowerCut();
    await machine.must(NAS);
    await isUp(machine, '0.0.9');
    await until('SMB serves', async () => (await machine.run(`${SMB} ls`)).code === 0, {
      timeoutMs: 30_000,
    });
    assert.equal(
      await machine.must(`${SMB} 'get last.txt /tmp/last' >/dev/null; cat /tmp/last`),
      'not yet up',
    );
    await machine.must('mountkeeper wait --synced --timeout 60s');
    assert.equal(await machine.must('cat /srv/nas/files/last.txt'), 'not yet up');
  });

  it('is upgraded, and no client has a call that fails', async () => {
    await installUnderLoad(machine, '/srv/current.deb');
    await isUp(machine, '0.1.0');
    assert.doesNotMatch(await notices(), /9\.9\.9/);
    assert.equal((await machine.run('ls -d /usr/lib/mountkeeper.former')).code, 2);
  });

  it('stops in an orderly way, and takes its shares down', async () => {
    await machine.must('systemctl stop mountkeeper');
    assert.equal(await machine.must('systemctl show --property=ExecMainStatus --value mountkeeper'), '0');
    assert.equal((await machine.run('grep -c /mnt/mountkeeper /proc/mounts')).stdout.trim(), '0');
    assert.equal((await machine.run('pgrep -f "[r]clone mount"')).stdout, '');
  });
});
