// @load quiet
// @start 4
// @long
/**
 * The NAS is away, and SMB clients open folders that nobody has listed before: they get an error, since smbd would show
 * them as empty.
 */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { localFile, smb } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, signalProcess } from '../../support/platform/processes.ts';
import type { SeenProcess } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { timed, until } from '../../support/platform/wait.ts';
import { inForm } from '../../support/platform/long-form.ts';

const USER = { name: 'alice', password: 's3cret Wort' };
/** Each test has folders of its own: they are listed when the NAS is back. */
const NEVER = Array.from({ length: 20 }, (_, index) => `never-${index}`);
const AN_ERROR = /NT_STATUS_(IO_DEVICE_ERROR|ACCESS_DENIED)/;

/** Of the NAS: how its answers are read is rclone's, and the same is made of them. */
const PROTOCOLS = inForm<readonly ('sftp' | 'webdav')[]>({ short: ['sftp'], long: ['sftp', 'webdav'] });

for (const protocol of PROTOCOLS) {
  describe(`folders that nobody has listed before their NAS was away (${protocol})`, () => {
    let scratch: Scratch;
    let relay: Relay;
    let daemon: Daemon;
    let port: number;
    let local: { readonly path: string };

    const ls = async (commands: string): Promise<string> =>
      (await smb('work', commands, { port, user: `${USER.name}%${USER.password}` })).output;
    /** Processes that are asked by the kernel, their children included. */
    const helpers = async (): Promise<readonly SeenProcess[]> =>
      (await allProcesses()).filter(
        ({ args }) => args[0]?.endsWith('perl') && args.at(-1) === daemon.mountPoint('work'),
      );
    const left = [...NEVER];
    const unlisted = (): string => left.pop() ?? assert.fail('there are no more');
    const goAway = async (t: TestContext, how: 'cut' | 'blackHole'): Promise<void> => {
      assert.deepEqual(await helpers(), []);
      await relay[how]();
      const goneAt = performance.now();
      await until('somebody is asked', async () => (await helpers()).length > 0, { timeoutMs: 20_000 });
      t.diagnostic(`asked ${Math.round(performance.now() - goneAt)} ms after the NAS had gone`);
      await areDenied();
    };
    const areDenied = (): Promise<unknown> => {
      const folder = unlisted();
      return until('no listing is a lie', async () => AN_ERROR.test(await ls(`ls ${folder}\\*`)), {
        timeoutMs: 60_000,
      });
    };

    before(async () => {
      scratch = await createScratch('unlisted');
      const nas = await Nas.create(scratch, {
        protocol,
        files: {
          'work/listed/a.bin': 3_000,
          'work/listed/in/c.bin': 10,
          ...Object.fromEntries(NEVER.map((name) => [`work/${name}/b.bin`, 5_000])),
        },
      });
      relay = await Relay.start(scratch, { targetPort: nas.port });
      port = await freePort();
      local = await localFile(scratch, 'new.bin', 20_000);
      daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas', relay.port)],
        shares: [{ name: 'work', connection: 'nas', remote_path: 'work' }],
        sections: {
          smb: { enabled: true, port, users: [USER] },
          // At the return of a NAS it has all folders listed.
          'plugins.nas-watch': { enabled: false },
        },
      });
      await daemon.start();
      await daemon.healthy();
      await until('it is shown', async () => /never-0/.test(await ls('ls')), { timeoutMs: 30_000 });
      assert.match(await ls('ls listed\\*; ls listed\\in\\*; get listed\\a.bin /dev/null'), /a\.bin/);
    });
    afterEach(async () => {
      await relay.restore();
      if (!daemon.alive) await daemon.start();
      await daemon.healthy([], 90_000);
      await until('nobody is asked any more', async () => (await helpers()).length === 0, {
        timeoutMs: 20_000,
      });
    });
    after(() => scratch.close());

    it('are an error to SMB clients, and nobody else notices', { timeout: 180_000 }, async (t) => {
      await goAway(t, 'cut');
      for (const folder of NEVER.slice(0, 4)) {
        assert.match(await ls(`ls ${folder}\\*`), AN_ERROR);
        assert.match(await ls(`ls ${folder}\\b.bin`), AN_ERROR);
      }
      assert.match(await ls('ls'), /never-0/);
      assert.match(await ls('ls listed\\*'), /a\.bin/);
      const work = [
        `put ${local.path} listed\\new.bin; put ${local.path} listed\\a.bin`,
        'rename listed\\new.bin listed\\in.bin; mkdir listed\\made',
        `put ${local.path} listed\\made\\deep.bin; ls listed\\made\\*; get listed\\made\\deep.bin /dev/null`,
        'del listed\\made\\deep.bin; rmdir listed\\made',
      ].join('; ');
      assert.doesNotMatch(await ls(work), /NT_STATUS/);
      await stat(`${daemon.mountPoint('work')}/listed/a.bin`);
      assert.match(await ls(`rmdir ${NEVER[0]}`), /NT_STATUS/);
      await relay.restore();
      await daemon.healthy([], 90_000);
      await until('nobody is asked any more', async () => (await helpers()).length === 0, {
        timeoutMs: 20_000,
      });
      for (const folder of NEVER.slice(0, 4)) assert.match(await ls(`ls ${folder}\\*`), /b\.bin/);
      await daemon.synced(60_000);
    });

    it('are one while the NAS is silent, too', { timeout: 180_000 }, async (t) => {
      await goAway(t, 'blackHole');
      const ms = await timed(ls(`ls ${unlisted()}\\*`).then((output) => assert.match(output, AN_ERROR)));
      t.diagnostic(`denied after ${Math.round(ms)} ms`);
      assert.match(await ls('ls listed\\*'), /a\.bin/);
    });

    it('freeze no share when the process that is asked stops', { timeout: 180_000 }, async (t) => {
      await goAway(t, 'cut');
      const stopped = await helpers();
      for (const helper of stopped) signalProcess(helper, 'SIGSTOP');
      const ms = await timed(ls('ls listed\\*').then((output) => assert.match(output, /a\.bin/)));
      t.diagnostic(`listed ${Math.round(ms)} ms after it stopped`);
      assert.ok(ms < 5_000, `${ms} ms`);
      await areDenied();
      const others = await helpers();
      assert.ok(others.every(({ pid }) => !stopped.some((one) => one.pid === pid)));
      assert.equal((await daemon.share('work')).mounted, true);
    });

    it(
      'leave no process behind a daemon that is killed, though it is stopped',
      { timeout: 180_000 },
      async (t) => {
        await goAway(t, 'cut');
        for (const helper of await helpers()) signalProcess(helper, 'SIGSTOP');
        await daemon.end();
        await until('it has ended', async () => (await helpers()).length === 0, { timeoutMs: 5_000 });
        assert.match(await ls('ls listed\\*'), /a\.bin/);
        await daemon.start();
        await areDenied();
      },
    );
  });
}
