import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { isInNamespace, runInNamespace } from '../../support/platform/network-namespace.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { exportStatus, notices, runClient, smb } from '../../support/exports/client-programs.ts';

const PROGRAMS = ['/usr/sbin/smbd', '/usr/bin/ganesha.nfsd'];

if (!isInNamespace) {
  describe('servers that cannot run as they are wanted', () => {
    it('pass their tests in a mount namespace where programs are hidden', async () => {
      const { code, output, passed, skipped } = await runInNamespace(import.meta.url, 300_000);
      // One that is new is to be counted here: what runs apart is counted nowhere else.
      assert.deepEqual({ code, passed, skipped }, { code: 0, passed: 5, skipped: 0 }, output);
    });
  });
} else
  describe('a server that cannot run as it is wanted', () => {
    let scratch: Scratch;
    let daemon: Daemon;
    const ports = { smb: 0, nfs: 0 };
    const users = [{ name: 'alice', password: 'pw' }];

    const flags = async () => {
      const { smbd_running: isSmb, nfs_exported: isNfs, shares } = await exportStatus(daemon);
      return { smb: isSmb, nfs: isNfs, mounted: shares.every((share) => share.mounted) };
    };
    /** The status is as old as the last cycle, what is said is not. */
    const stand = (wanted: Awaited<ReturnType<typeof flags>>) =>
      until(`it stands ${JSON.stringify(wanted)}`, async () => isDeepStrictEqual(await flags(), wanted), {
        timeoutMs: 30_000,
      });
    const said = (...sentences: RegExp[]) =>
      until(
        `it is said: ${sentences.map(String).join(', ')}`,
        async () => {
          const text = await notices(daemon);
          return sentences.every((sentence) => sentence.test(text));
        },
        { timeoutMs: 30_000 },
      );
    const bothServe = () =>
      until(
        'both serve',
        async () => {
          const now = await flags();
          return now.smb && now.nfs;
        },
        { timeoutMs: 30_000 },
      );
    const change = async (smbKeys: object, nfsKeys: object): Promise<void> => {
      const { body } = await daemon.submit(
        daemon.text({ sections: { smb: { users, ...smbKeys }, nfs: { ...nfsKeys } } }),
      );
      assert.equal(body.ok, true, body.message);
    };
    const listen = async (): Promise<{ readonly server: Server; readonly port: number }> => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      scratch.defer(() => server.close());
      return { server, port: (server.address() as { port: number }).port };
    };

    before(async () => {
      await runClient('ip', ['link', 'set', 'lo', 'up']);
      await runClient('ip', ['link', 'add', 'card0', 'type', 'veth', 'peer', 'name', 'card1']);
      for (const card of ['card0', 'card1']) await runClient('ip', ['link', 'set', card, 'up']);
      // NFS-Ganesha starts on no machine that has loopback alone.
      await runClient('ip', ['addr', 'add', '192.0.2.1/24', 'dev', 'card0']);
      scratch = await createScratch('trouble');
      const nas = await Nas.create(scratch, { files: { 'team/a': 10 } });
      Object.assign(ports, { smb: await freePort(), nfs: await freePort() });
      daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas')],
        shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
        sections: {
          smb: { enabled: true, port: ports.smb, users },
          nfs: { enabled: true, port: ports.nfs, allowed_clients: ['127.0.0.1'] },
        },
      });
    });
    after(() => scratch.close());

    it('without its package leaves the share mounted, and says what to install', async () => {
      for (const program of PROGRAMS)
        assert.equal((await runClient('mount', ['--bind', '/dev/null', program])).code, 0);
      await daemon.start();
      await daemon.healthy();
      await said(
        /SMB: the SMB server is not installed: install the package samba/,
        /NFS: the NFS server is not installed: install the package nfs-ganesha/,
      );
      await stand({ smb: false, nfs: false, mounted: true });
      const { stdout } = await daemon.cli('doctor');
      assert.match(stdout, /apt-get install samba/);
      assert.match(stdout, /apt-get install nfs-ganesha/);
      const log = await daemon.log();
      assert.match(log, /install the package samba/);
      assert.match(log, /install the package nfs-ganesha/);
    });

    it('runs by itself once the package has come', async () => {
      for (const program of PROGRAMS) assert.equal((await runClient('umount', [program])).code, 0);
      await bothServe();
    });

    it('whose port is taken says so, and the other server goes on', async () => {
      const [one, two] = [await listen(), await listen()];
      await change({ port: one.port }, {});
      await said(new RegExp(`SMB: port ${one.port} on 127\\.0\\.0\\.1 is taken`));
      await stand({ smb: false, nfs: true, mounted: true });
      await change({}, { port: two.port });
      await said(new RegExp(`NFS: port ${two.port} on 127\\.0\\.0\\.1 is taken`));
      await stand({ smb: true, nfs: false, mounted: true });
      two.server.close();
      await bothServe();
    });

    it('whose address is missing says so, and runs once the address is there', async () => {
      await change(
        { listen: ['203.0.113.9', '127.0.0.1'] },
        { listen: '203.0.113.9', allowed_clients: ['203.0.113.0/24'] },
      );
      await said(
        /SMB does not listen on 203\.0\.113\.9: this machine has no such address/,
        /NFS: 203\.0\.113\.9: this machine has no such address/,
      );
      await stand({ smb: true, nfs: false, mounted: true });
      await runClient('ip', ['addr', 'add', '203.0.113.9/24', 'dev', 'card0']);
      await bothServe();
      await until(
        'SMB listens on the address',
        async () =>
          (
            await runClient('smbclient', [
              '//203.0.113.9/team',
              '-p',
              String(ports.smb),
              '-U',
              'alice%pw',
              '-c',
              'ls',
            ])
          ).code === 0,
        { timeoutMs: 30_000 },
      );
      await change({ listen: ['198.51.100.9'] }, {});
      await said(/SMB: 198\.51\.100\.9: this machine has no such address or network interface/);
    });

    it('refuses a document with users that cannot be, says why, and serves the others', async () => {
      const refusal = async (user: object) =>
        (await daemon.submit(daemon.text({ sections: { smb: { users: [...users, user as never] } } }))).body;
      const missing = await refusal({ name: 'bob', password: { file: scratch.path('no-such-file') } });
      assert.equal(missing.ok, false);
      assert.match(
        missing.message,
        /smb\.users\[1\]\.password refers to a secret that the configuration file does not refer to there/,
      );
      assert.match(
        (await refusal({ name: 'root', password: 'x' })).message,
        /a name that the server keeps for itself; choose another/,
      );
      await change({}, {});
      await bothServe();
      await until(
        'the user is let in',
        async () => (await smb('team', 'ls', { port: ports.smb, user: 'alice%pw' })).code === 0,
        { timeoutMs: 20_000 },
      );
      assert.match(
        (await smb('team', 'ls', { port: ports.smb, user: 'bob%' })).output,
        /NT_STATUS_(LOGON_FAILURE|ACCESS_DENIED)/,
      );
      assert.equal((await daemon.stop()).code, 0);
    });
  });
