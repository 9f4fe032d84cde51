import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { after, before, describe, it } from 'node:test';
import {
  CARD,
  connectPeer,
  HERE,
  isInNamespace,
  NETWORK,
  runInNamespace,
  startAvahi,
  THERE,
} from '../../support/platform/network-namespace.ts';
import type { Peer } from '../../support/platform/network-namespace.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, isAlive } from '../../support/platform/processes.ts';
import { rightsOf, SERVICE_RIGHTS } from '../../support/platform/rights.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { exportStatus, notices, runClient } from '../../support/exports/client-programs.ts';
import type { ClientResult } from '../../support/exports/client-programs.ts';

const ASKER = fileURLToPath(new URL('../../support/exports/mdns-query.js', import.meta.url));
const RESPONDER = fileURLToPath(new URL('../../support/exports/nas-responder.js', import.meta.url));
const USER = 'alice%pw';
const NAME = 'shelf';

if (!isInNamespace) {
  describe('shares that are found in the network', () => {
    it('pass their tests in a network namespace of their own', async () => {
      const { code, output, passed, skipped } = await runInNamespace(import.meta.url, 400_000);
      // One that is new is to be counted here: what runs apart is counted nowhere else.
      assert.deepEqual({ code, passed, skipped }, { code: 0, passed: 10, skipped: 0 }, output);
    });
  });
} else
  describe('shares in the network', () => {
    let scratch: Scratch;
    let peer: Peer;
    let daemon: Daemon;
    let nfsPort: number;
    const smb = { enabled: true, port: 445, listen: [CARD], users: [{ name: 'alice', password: 'pw' }] };

    const onPeer = (...words: string[]): Promise<ClientResult> => {
      const [command = '', ...args] = [...peer.prefix, ...words];
      return runClient(command, args, 15_000);
    };
    const ask = async (name: string, type = 'PTR'): Promise<string> =>
      (await onPeer(process.execPath, ASKER, 'ask', THERE, name, type)).output;
    const wsdd = async () =>
      (await allProcesses()).find(
        (one) => one.args.some((arg) => arg.endsWith('/wsdd')) && one.args.includes(NAME),
      )?.pid;
    /** Ports of UDP that somebody listens on in this network. */
    const udpPorts = async () =>
      (await readFile('/proc/net/udp', 'utf8'))
        .split('\n')
        .slice(1)
        .filter((line) => line !== '')
        .map((line) => Number.parseInt(line.trim().split(/\s+/)[1]?.split(':')[1] ?? '0', 16));
    const neighbourhood = async () =>
      (
        await runClient('timeout', [
          '3',
          ...peer.prefix,
          'env',
          'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
          'wsdd',
          '--discovery',
          '--no-host',
          '--ipv4only',
          '-v',
          '-i',
          CARD,
        ])
      ).output;

    before(async () => {
      scratch = await createScratch('lan');
      peer = await connectPeer(scratch);
      const nas = await Nas.create(scratch, { files: { 'photos/a.bin': 10_000 } });
      nfsPort = await freePort();
      daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas')],
        shares: [{ name: 'photos', connection: 'nas', remote_path: 'photos' }],
        sections: {
          smb: { ...smb, listen: ['127.0.0.1'] },
          nfs: { enabled: true, port: nfsPort, listen: HERE, allowed_clients: ['127.0.0.0/8'] },
          // The other machine sends its password in clear, which only the file can allow.
          webdav: { plain_http: true },
          'plugins.discovery': { name: NAME, workgroup: 'TEAM', enabled: true },
        },
      });
    });
    after(() => scratch.close());

    const change = async (sections: Parameters<Daemon['text']>[0]): Promise<void> =>
      assert.equal((await daemon.submit(daemon.text(sections))).body.ok, true);

    it('are not announced while they are served to this machine alone, and no packet is sent', async () => {
      await daemon.writeConfig(daemon.text({ sections: { nfs: { enabled: false } } }));
      await daemon.start();
      await until('SMB is served', async () => (await exportStatus(daemon)).smbd_running, {
        timeoutMs: 30_000,
      });
      const doctor = await daemon.cli('doctor');
      assert.match(doctor.stdout, /nothing is announced/);
      assert.equal(await ask('_smb._tcp.local'), '[]\n');
      assert.deepEqual(
        (await udpPorts()).filter((port) => port === 5_353 || port === 3_702),
        [],
      );
    });

    it('are found by macOS and Linux with name, address and port as soon as the network is served', async () => {
      await change({ sections: { smb } });
      await until(
        'SMB is announced',
        async () => (await ask('_smb._tcp.local')).includes(`${NAME}._smb._tcp.local`),
        { timeoutMs: 30_000, everyMs: 200 },
      );
      // Announcements that come of themselves are heard beside the answer.
      const wanted = [
        ['_smb._tcp.local', 'PTR', `${NAME}._smb._tcp.local`],
        [`${NAME}._smb._tcp.local`, 'SRV', `${NAME}.local:445`],
        [`${NAME}._smb._tcp.local`, 'TXT', ['']],
        [`${NAME}.local`, 'A', HERE],
      ];
      // A packet may be late for who listens for less than a second.
      await until(
        'all of it is heard',
        async () => {
          const heard = JSON.parse(await ask('_smb._tcp.local')) as unknown[];
          return wanted.every((record) => heard.some((one) => isDeepStrictEqual(one, record)));
        },
        { timeoutMs: 20_000 },
      );
      await until(
        'a Mac shows it as a server',
        async () => (await ask(`${NAME}._device-info._tcp.local`, 'TXT')).includes('model=RackMac'),
        { timeoutMs: 20_000 },
      );
      const entered = await onPeer('smbclient', `//${HERE}/photos`, '-U', USER, '-c', 'ls');
      assert.match(entered.output, /a\.bin/);
      assert.match((await daemon.cli('doctor')).stdout, /smb.* by multicast DNS/);
    });

    it('are found by a Linux desktop', async () => {
      const { DBUS_SYSTEM_BUS_ADDRESS: bus = '' } = await startAvahi(scratch, peer);
      const browse = async (): Promise<string> =>
        (
          await onPeer(
            'env',
            `DBUS_SYSTEM_BUS_ADDRESS=${bus}`,
            'avahi-browse',
            '--parsable',
            '--resolve',
            '--terminate',
            '_smb._tcp',
          )
        ).output;
      await until(
        'it is browsed',
        async () =>
          (await browse())
            .split('\n')
            .includes(`=;${CARD};IPv4;${NAME};Microsoft Windows Network;local;${NAME}.local;${HERE};445;`),
        { timeoutMs: 30_000, everyMs: 300 },
      );
    });

    it('are found by Windows, through a helper without rights that is adopted by the next daemon', async () => {
      await until(
        'Windows would find it',
        async () =>
          /shelf in TEAM on 192\.0\.2\.1|shelf in Workgroup:TEAM on 192\.0\.2\.1/i.test(
            await neighbourhood(),
          ),
        { timeoutMs: 60_000 },
      );
      const pid = await wsdd();
      assert.ok(pid !== undefined);
      assert.deepEqual(await rightsOf(pid), { ...SERVICE_RIGHTS, groups: '65534 65534 65534 65534 and ' });
      await daemon.end();
      await daemon.start();
      await until('SMB is served', async () => (await exportStatus(daemon)).smbd_running, {
        timeoutMs: 30_000,
      });
      await until('SMB is announced again', async () => (await ask('_smb._tcp.local')).includes(NAME), {
        timeoutMs: 30_000,
        everyMs: 200,
      });
      assert.equal(await wsdd(), pid);
    });

    it('are open over NFS to the machines that are let in alone', async () => {
      const list = () => onPeer('nfs-ls', `nfs://${HERE}/photos?version=4&nfsport=${nfsPort}`);
      await change({ sections: { smb, nfs: { allowed_clients: [`${HERE}/32`, '127.0.0.1'] } } });
      await until(
        'NFS is announced',
        async () => (await ask('_nfs._tcp.local')).includes(`${NAME}.local:${nfsPort}`),
        { timeoutMs: 20_000, everyMs: 200 },
      );
      assert.notEqual((await list()).code, 0);
      await change({ sections: { smb, nfs: { allowed_clients: [NETWORK] } } });
      await until('the machine is let in', async () => (await list()).output.includes('a.bin'), {
        timeoutMs: 30_000,
        everyMs: 300,
      });
    });

    it('are found and open over WebDAV', async () => {
      const port = await freePort();
      await change({
        sections: {
          smb,
          webdav: { enabled: true, port, listen: HERE, users: [{ name: 'alice', password: 'pw' }] },
        },
      });
      await until(
        'WebDAV is announced',
        async () => (await ask('_webdav._tcp.local')).includes(`${NAME}.local:${port}`),
        { timeoutMs: 20_000, everyMs: 200 },
      );
      assert.match(
        (
          await onPeer(
            'curl',
            '--silent',
            '--head',
            '--user',
            'alice:pw',
            `http://${HERE}:${port}/photos/a.bin`,
          )
        ).output,
        /200 OK/,
      );
    });

    it('are taken back when they are served no more', async () => {
      const pid = (await wsdd()) as number;
      await change({ sections: { smb: { enabled: false }, nfs: { enabled: false } } });
      await until(
        'nothing is announced',
        async () => (await ask('_smb._tcp.local')) === '[]\n' && (await ask('_webdav._tcp.local')) === '[]\n',
        { timeoutMs: 30_000, everyMs: 200 },
      );
      await until('the helper has ended', () => !isAlive(pid), { timeoutMs: 30_000 });
      await until(
        'nobody listens any more',
        async () => !(await udpPorts()).some((port) => port === 5_353 || port === 3_702),
        { timeoutMs: 20_000 },
      );
    });

    it('give another machine nothing for a password over plain HTTP, unless that is allowed by name', async () => {
      const port = await freePort();
      const far = (plain_http: boolean) => ({
        smb: { enabled: false },
        nfs: { enabled: false },
        web: { listen: '0.0.0.0', password: 'pw', plain_http },
        webdav: {
          enabled: true,
          port,
          listen: '0.0.0.0',
          users: [{ name: 'alice', password: 'pw' }],
          plain_http,
        },
      });
      const asked = async (ask: typeof onPeer, host: string): Promise<readonly number[]> => {
        const status = async (user: string, at: string): Promise<number> => {
          const form = ['--disable', '--silent', '--output', '/dev/null', '--write-out', '%{http_code}'];
          return Number((await ask('curl', ...form, '--user', `${user}:pw`, `http://${host}:${at}`)).output);
        };
        return [
          await status('admin', `${daemon.port}/api/status`),
          await status('alice', `${port}/photos/a.bin`),
        ];
      };
      const here: typeof onPeer = (command = '', ...args) => runClient(command, args);
      const answers = (what: string, ask: typeof onPeer, host: string, statuses: readonly number[]) =>
        until(what, async () => isDeepStrictEqual(await asked(ask, host), statuses), { timeoutMs: 30_000 });
      await daemon.writeConfig(daemon.text({ sections: far(false) }));
      await answers('both are served', here, '127.0.0.1', [200, 200]);
      assert.deepEqual(await asked(onPeer, HERE), [403, 403]);
      const check = await daemon.cli('check');
      for (const section of ['web', 'webdav'])
        assert.match(check.stdout, new RegExp(`warning: .*\\b${section}\\.plain_http = true`));
      await daemon.writeConfig(daemon.text({ sections: far(true) }));
      await answers('both are allowed', onPeer, HERE, [200, 200]);
      const { smb: noSmb, nfs: noNfs } = far(false);
      await daemon.writeConfig(daemon.text({ sections: { smb: noSmb, nfs: noNfs } }));
      await until('nobody is asked any more', async () => (await daemon.get('/api/status')).status === 200, {
        timeoutMs: 20_000,
      });
    });

    it('are offered by others as well: a NAS in the network is found by the guide', async () => {
      const [command = '', ...args]: readonly string[] = [
        ...peer.prefix,
        process.execPath,
        RESPONDER,
        THERE,
        '1',
      ];
      const other = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
      scratch.defer(() => other.kill('SIGKILL'));
      await once(other.stdout, 'data');
      const { body } = await daemon.get<{ found: unknown[] }>('/api/setup/found');
      assert.deepEqual(body.found, [{ kind: 'smb', name: 'disk 0', address: `${THERE}:4000` }]);
      const shown = await daemon.get('/dashboard/parts/setup/found');
      assert.match(shown.text, /disk 0.*hx-get="[^"]*address=192\.0\.2\.2%3A4000/s);
      other.kill('SIGKILL');
    });

    it('give way to another machine that goes by the name already, and say so', async () => {
      const [command = '', ...args]: readonly string[] = [
        ...peer.prefix,
        process.execPath,
        ASKER,
        'claim',
        THERE,
        NAME,
      ];
      const rival = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
      scratch.defer(() => rival.kill('SIGKILL'));
      await once(rival.stdout, 'data');
      await change({ sections: { smb } });
      await until(
        'it is said',
        async () => (await notices(daemon)).includes(`the machine at ${THERE} goes by the name`),
        { timeoutMs: 20_000 },
      );
      assert.equal(await ask('_smb._tcp.local'), '[]\n');
      await change({ sections: { smb, 'plugins.discovery': { name: 'other-shelf', enabled: true } } });
      await until(
        'it is announced by its new name',
        async () => (await ask('_smb._tcp.local')).includes('other-shelf._smb._tcp.local'),
        { timeoutMs: 20_000, everyMs: 200 },
      );
      assert.equal((await daemon.stop()).code, 0);
    });
  });
