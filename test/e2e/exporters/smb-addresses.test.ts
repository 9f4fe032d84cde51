/** Addresses that come and go while people are connected: smbd opens its sockets only at its start. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import {
  CARD,
  connectPeer,
  HERE,
  isInNamespace,
  runInNamespace,
} from '../../support/platform/network-namespace.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { exportStatus, notices, runClient, SmbSession } from '../../support/exports/client-programs.ts';

/** Long enough for five looks without an answer. */
const FIVE_LOOKS_MS = 22_000;
const GOES = '192.0.2.8';
const COMES = '192.0.2.9';

if (!isInNamespace) {
  describe('addresses of SMB', () => {
    it('pass their tests in a network namespace of their own', async () => {
      const { code, output, passed, skipped } = await runInNamespace(import.meta.url, 240_000);
      assert.deepEqual({ code, passed, skipped }, { code: 0, passed: 2, skipped: 0 }, output);
    });
  });
} else
  describe('addresses of SMB in a network', () => {
    let scratch: Scratch;
    let daemon: Daemon;
    let port: number;
    let session: SmbSession;
    const alice = { name: 'alice', password: 'pw' };

    const ip = async (...words: string[]): Promise<void> =>
      assert.equal((await runClient('ip', words)).code, 0, words.join(' '));
    const isServedAt = async (host: string): Promise<boolean> =>
      (await runClient('smbclient', [`//${host}/team`, '-p', String(port), '-U', 'alice%pw', '-c', 'ls']))
        .code === 0;
    /** Nobody is cut off, and the status says so, as long as it takes to end a server that is silent. */
    const allStays = async (): Promise<void> => {
      const end = performance.now() + FIVE_LOOKS_MS;
      while (performance.now() < end) {
        assert.match(await session.run('ls'), /a\.bin/);
        assert.equal((await exportStatus(daemon)).smbd_running, true);
      }
    };

    before(async () => {
      scratch = await createScratch('smb-addresses');
      await connectPeer(scratch);
      await ip('addr', 'add', `${GOES}/24`, 'dev', CARD);
      const nas = await Nas.create(scratch, { files: { 'team/a.bin': 10_000 } });
      port = await freePort();
      daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas')],
        shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
        sections: { smb: { enabled: true, port, listen: ['127.0.0.1', CARD], users: [alice] } },
      });
      await daemon.start();
      for (const host of [HERE, GOES])
        await until(`it is served at ${host}`, () => isServedAt(host), { timeoutMs: 30_000 });
      await until('it says so', async () => (await exportStatus(daemon)).smbd_running, { timeoutMs: 20_000 });
      session = new SmbSession('team', { port, user: 'alice%pw' }, scratch);
    });
    after(() => scratch.close());

    it('cost nobody a session when one goes', async () => {
      await ip('addr', 'del', `${GOES}/24`, 'dev', CARD);
      await allStays();
    });

    it('are served when they have come as soon as nobody is connected, also after a reload', async () => {
      await ip('addr', 'add', `${COMES}/24`, 'dev', CARD);
      const users = [alice, { name: 'ben', password: 'pw' }];
      assert.equal((await daemon.submit(daemon.text({ sections: { smb: { users } } }))).body.ok, true);
      await until('it is up', async () => (await exportStatus(daemon)).smbd_running, { timeoutMs: 20_000 });
      await allStays();
      assert.match(
        await notices(daemon),
        /not listen on 192\.0\.2\.9 yet: smbd restarts for it once nobody is/,
      );
      assert.equal(await isServedAt(COMES), false);
      session.close();
      await until('it is served there, too', () => isServedAt(COMES), { timeoutMs: 40_000 });
      assert.ok(await isServedAt(HERE));
    });
  });
