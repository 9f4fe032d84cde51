// @load loud
// @long
/** The Debian package on a machine with a real systemd: removed and upgraded while something goes wrong. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unlessControlGroups } from '../../runner/skips.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { builtDeb } from '../../support/package/build-packages.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { isUp, setUpShare } from '../../support/package/upgrade-under-load.ts';
import { SystemdMachine } from '../../support/package/systemd-machine.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const CONFIG = '/etc/mountkeeper/mountkeeper.toml';
const FILE = '/mnt/mountkeeper/files/small.bin';
const STATE = 'systemctl show --property=ActiveState --value mountkeeper';

describe('the Debian package when something goes wrong', { skip: unlessControlGroups }, () => {
  let scratch: Scratch;
  let machine: SystemdMachine;

  before(
    async () => {
      scratch = await createScratch('removal');
      const current = await builtDeb(scratch.path('packages'));
      machine = await SystemdMachine.boot(scratch);
      await machine.put(currentRclone(), '/usr/local/bin/rclone');
      await machine.put(current, '/srv/current.deb');
      await machine.must('dpkg --install /srv/current.deb', 300_000);
      await setUpShare(machine, 3);
      await isUp(machine, '0.1.0');
    },
    { timeout: 300_000 },
  );
  after(() => scratch.close());

  const isState = (state: string): Promise<unknown> =>
    until(`the unit is ${state}`, async () => (await machine.must(STATE)) === state, { timeoutMs: 60_000 });

  it('is not removed from under mounted shares, and then as it says', async () => {
    await machine.must(
      `cp ${CONFIG} /root/config; echo 'no key' >>${CONFIG}; systemctl kill --signal=KILL --kill-who=main mountkeeper`,
    );
    await isState('failed');
    const refused = await machine.run('dpkg --remove mountkeeper');
    assert.notEqual(refused.code, 0);
    assert.match(
      refused.stderr,
      /not removed\. Shares are still mounted:\n(?:\/.*\n)*\/mnt\/mountkeeper\/files\n/,
    );
    assert.equal((await machine.run(`cmp ${FILE} /srv/nas/files/small.bin`)).code, 0);
    assert.match(
      await machine.must('dpkg --status mountkeeper'),
      /^Status: install|^Status: deinstall ok installed/m,
    );
    await machine.must(`cp /root/config ${CONFIG}`);
    const told = /^ {2}(systemctl start .*)$/m.exec(refused.stderr)?.[1] ?? '';
    await machine.must(told);
    await machine.must('dpkg --remove mountkeeper');
    assert.equal((await machine.run('grep -c mountkeeper: /proc/mounts')).stdout.trim(), '0');
    await machine.must('dpkg --install /srv/current.deb', 300_000);
    await isUp(machine, '0.1.0');
  });

  for (const signal of inForm({ short: ['KILL'], long: ['HUP', 'INT', 'KILL'] }))
    it(`is upgraded and gets SIG${signal} meanwhile: the daemon is back, if need be by the next one`, async () => {
      const former = await machine.must('systemctl show --property=MainPID --value mountkeeper');
      // A shell that started it in the background would keep SIGINT from it.
      await machine.must('systemd-run --quiet --unit=upgrade --collect dpkg --install /srv/current.deb');
      await machine.must(
        `until [ -e /run/systemd/system/mountkeeper.service.d/trial.conf ]; do sleep 0.02; done
        pkill -${signal} --full '[m]ountkeeper.postinst'
        while systemctl is-active --quiet upgrade; do sleep 0.1; done`,
      );
      assert.match(await machine.must('dpkg --status mountkeeper'), /^Status: install ok half-configured$/m);
      assert.equal((await machine.run(`cmp ${FILE} /srv/nas/files/small.bin`)).code, 0);
      if (signal === 'KILL') await machine.must('dpkg --install /srv/current.deb', 300_000);
      await isState('active');
      await isUp(machine, '0.1.0');
      assert.notEqual(await machine.must('systemctl show --property=MainPID --value mountkeeper'), former);
      assert.equal(await machine.must('systemctl show --property=Restart --value mountkeeper'), 'on-failure');
      await machine.must('dpkg --configure -a', 300_000);
    });
});
