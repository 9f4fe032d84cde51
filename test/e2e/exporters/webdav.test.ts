// @start 6
/** Shares over WebDAV: what clients get and change, and what kills, reloads and stops do to them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { checksumOf, Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, isAlive } from '../../support/platform/processes.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SLOW_MACHINE } from '../../support/platform/cpu-pressure.ts';
import { until } from '../../support/platform/wait.ts';
import { rightsOf, SERVICE_RIGHTS } from '../../support/platform/rights.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { exportStatus, flagged, localFile, runClient, sumOf } from '../../support/exports/client-programs.ts';

const PHOTOS = '照片 Photos';
const USER = ['-u', 'alice:wonder:land'];
const rclone = currentRclone();

describe('shares over WebDAV', () => {
  let scratch: Scratch;
  let nas: Nas;
  let files: Files;
  let daemon: Daemon;
  let port: number;

  const url = (share: string, path = ''): string =>
    `http://127.0.0.1:${port}/${encodeURIComponent(share)}/${path}`;
  /** The status that curl was answered, and what it printed. */
  const curl = async (...args: string[]): Promise<{ status: number; text: string }> => {
    const { output } = await runClient('curl', ['-sS', '-w', '\n%{http_code}', ...args], 30_000);
    const at = output.lastIndexOf('\n');
    return { status: Number(output.slice(at + 1)), text: output.slice(0, at) };
  };
  const dav = (...args: string[]) => curl(...USER, ...args);
  const proxyPid = async (): Promise<number | undefined> =>
    (await allProcesses()).find(
      ({ args }) =>
        args[1]?.endsWith('/webdav/proxy/main.js') === true && args[2]?.startsWith(daemon.stateDir) === true,
    )?.pid;
  /** A transfer at a limited rate that goes on by itself. */
  const slowly = (...args: string[]): { child: ChildProcess; ended: Promise<number | null> } => {
    const child = spawn('curl', ['-sS', '--fail', '--limit-rate', '4M', ...USER, ...args], {
      stdio: 'ignore',
    });
    scratch.defer(() => child.kill('SIGKILL'));
    return { child, ended: once(child, 'exit').then(([code]) => code as number | null) };
  };

  before(async () => {
    scratch = await createScratch('dav');
    nas = await Nas.create(scratch, {
      files: {
        'photos/from nas.bin': 300_000,
        'photos/long.bin': 24_000_000,
        'team/a': 1_000,
        'archive/old.bin': 1_000,
      },
    });
    files = new Files(scratch);
    port = await freePort();
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [
        { name: PHOTOS, connection: 'nas', remote_path: 'photos' },
        { name: 'team', connection: 'nas', remote_path: 'team' },
        { name: 'archive', connection: 'nas', remote_path: 'archive', read_only: true },
        { name: 'hidden', connection: 'nas', remote_path: 'team', protocols: ['smb'] },
      ],
      sections: { webdav: { enabled: true, port, users: [{ name: 'alice', password: 'wonder:land' }] } },
    });
    await daemon.start();
    await daemon.healthy();
    await until('WebDAV is served', async () => (await exportStatus(daemon)).webdav_running, {
      timeoutMs: 30_000,
    });
  });
  after(() => scratch.close());

  it('is served by a process that may nothing that root may', { skip: unlessRoot }, async () => {
    assert.deepEqual(await rightsOf((await proxyPid()) ?? 0), SERVICE_RIGHTS);
  });

  it('has servers behind it that listen on no port, and want their password all the same', async () => {
    const servers = (await allProcesses()).filter(
      ({ command, args }) => command.includes(`${daemon.mountRoot}/`) && args.includes('webdav'),
    );
    assert.equal(servers.length, 3);
    for (const { args } of servers) {
      assert.doesNotMatch(args.join(' '), /127\.0\.0\.1/);
      const socket = args.find((one) => one.startsWith('--addr=unix://'))?.slice('--addr=unix://'.length);
      const base = args.find((one) => one.startsWith('--baseurl='))?.slice('--baseurl='.length) ?? '';
      const asked = await curl('--unix-socket', socket ?? '', `http://localhost${encodeURI(base)}/`);
      assert.equal(asked.status, 401);
    }
  });

  it('gives files back byte for byte, and takes what clients write', async () => {
    assert.equal((await dav('-o', scratch.path('back'), url(PHOTOS, 'from%20nas.bin'))).status, 200);
    assert.equal(await sumOf(scratch.path('back')), await nas.checksum('photos/from nas.bin'));
    assert.equal(
      (await dav('-r', '1000-1999', '-o', scratch.path('part'), url(PHOTOS, 'from%20nas.bin'))).status,
      206,
    );
    assert.equal((await stat(scratch.path('part'))).size, 1_000);
    const { path, sum } = await localFile(scratch, 'up.bin', 3_000_000);
    assert.equal(
      (await dav('-T', path, '-H', 'X-OC-Mtime: 1600000000', url(PHOTOS, '%E6%96%B0%20file%25.bin'))).status,
      201,
    );
    assert.equal(await files.checksum(`${daemon.mountPoint(PHOTOS)}/新 file%.bin`), sum);
    await until(
      'it is on the NAS',
      async () =>
        (await nas.has('photos/新 file%.bin')) && (await nas.checksum('photos/新 file%.bin')) === sum,
      { timeoutMs: 30_000 },
    );
    await until(
      'it has its time there',
      async () => Math.round((await stat(nas.path('photos/新 file%.bin'))).mtimeMs / 1_000) === 1_600_000_000,
      { timeoutMs: 20_000 },
    );
    assert.equal(Math.round((await stat(nas.path('photos/新 file%.bin'))).mtimeMs / 1_000), 1_600_000_000);
    for (const name of [
      "Côte d'Azur (1) & co, 50% + $x; a=b @ home!*.txt",
      ' leading',
      '~$owner',
      '#1 [x] {y} ^`|',
    ]) {
      assert.equal((await dav('-g', '-T', path, url(PHOTOS, encodeURIComponent(name)))).status, 201, name);
      assert.equal(await files.checksum(`${daemon.mountPoint(PHOTOS)}/${name}`), sum, name);
      assert.equal(
        (
          await dav(
            '-g',
            '-X',
            'MOVE',
            '-H',
            `Destination: ${url(PHOTOS, `moved%20${encodeURIComponent(name)}`)}`,
            url(PHOTOS, encodeURIComponent(name)),
          )
        ).status,
        201,
        name,
      );
      assert.equal(
        (await dav('-g', '-X', 'DELETE', url(PHOTOS, `moved%20${encodeURIComponent(name)}`))).status,
        204,
        name,
      );
    }
    await writeFile(scratch.path('.netrc'), 'machine 127.0.0.1 login alice password wonder:land\n', {
      mode: 0o600,
    });
    const commands = [
      'mkcol "ordner ü"',
      `put ${path} "ordner ü/first"`,
      'copy "ordner ü/first" "ordner ü/second"',
      'move a "ordner ü/b"',
      'lock "ordner ü/first"',
      'unlock "ordner ü/first"',
      'ls "ordner ü"',
    ];
    await writeFile(scratch.path('commands'), `${commands.join('\n')}\n`);
    const session = await runClient(
      'sh',
      ['-c', `HOME='${scratch.root}' exec cadaver ${url('team')} < '${scratch.path('commands')}'`],
      60_000,
    );
    assert.match(session.output, /first +3000000.*second +3000000|succeeded[^]*b +1000/s, session.output);
    assert.doesNotMatch(session.output, /failed/i);
    await until(
      'it has moved on the NAS',
      async () => (await nas.has('team/ordner ü/b')) && !(await nas.has('team/a')),
      { timeoutMs: 30_000 },
    );
  });

  it('puts nothing in the place of a folder that it is in, which would go with it, nor into itself', async () => {
    const content = scratch.path('kept-content');
    await writeFile(content, 'kept');
    for (const folder of ['photos', 'photos/photos'])
      assert.equal((await dav('-X', 'MKCOL', url('team', folder))).status, 201);
    for (const file of ['photos/other', 'photos/photos/in'])
      assert.equal((await dav('-T', content, url('team', file))).status, 201);
    for (const [method, from, to] of [
      ['MOVE', 'photos/photos', 'photos'],
      ['COPY', 'photos/photos/in', 'photos'],
      ['MOVE', 'photos/photos/in', 'photos/'],
      ['COPY', 'photos', 'photos/photos/deeper'],
    ] as const) {
      const { status } = await dav('-X', method, '-H', `Destination: ${url('team', to)}`, url('team', from));
      assert.equal(status, 403, `${method} ${from} ${to}`);
    }
    const root = `${daemon.mountPoint('team')}/photos`;
    for (const file of ['other', 'photos/in'])
      assert.equal(await files.checksum(`${root}/${file}`), await checksumOf(content));
    assert.equal((await dav('-X', 'DELETE', url('team', 'photos'))).status, 204);
  });

  it('shows what is written on the machine, right after it is', async () => {
    for (const [round, bytes] of [5_000, 9_000, 100].entries()) {
      const sum = await files.write(`${daemon.mountPoint('team')}/by mount`, bytes);
      await until(
        `content ${round} is there for WebDAV`,
        async () =>
          (await dav('-o', scratch.path('seen'), url('team', 'by%20mount'))).status === 200 &&
          (await sumOf(scratch.path('seen'))) === sum,
        { timeoutMs: 5_000 * SLOW_MACHINE },
      );
    }
  });

  it('refuses wrong users and paths outside of the share', async () => {
    const { path } = await localFile(scratch, 'small', 2_000);
    const old = await nas.checksum('archive/old.bin');
    for (const [expected, ...args] of [
      ['401', url('team', 'ordner%20%C3%BC/b')],
      ['401', '-u', 'alice:wrong', url('team', 'ordner%20%C3%BC/b')],
      ['401', '-u', 'bob:wonder:land', url('team')],
      ['403', ...USER, '-T', path, url('archive', 'old.bin')],
      ['403', ...USER, '-X', 'DELETE', url('archive', 'old.bin')],
      ['403', ...USER, '-X', 'MKCOL', url('archive', 'new')],
      ['403', ...USER, '-X', 'MOVE', '-H', `Destination: ${url('archive', 'x')}`, url('archive', 'old.bin')],
      ['400', ...USER, '--path-as-is', `http://127.0.0.1:${port}/team/../../../../etc/passwd`],
      ['400', ...USER, '--path-as-is', url('team', '%2e%2e/%2e%2e/etc/passwd')],
      ['400', ...USER, '--path-as-is', url('team', '..%2f..%2fetc%2fpasswd')],
      ['404', ...USER, url('hidden')],
      ['404', ...USER, url('nothing')],
      ['502', ...USER, '-X', 'COPY', '-H', `Destination: ${url(PHOTOS, 'x')}`, url('team', 'by%20mount')],
      ['403', ...USER, '-X', 'DELETE', url('team')],
      ['405', ...USER, '-d', 'x', url('team', 'x')],
      ['405', ...USER, '-X', 'TRACE', url('team', 'x')],
      ['400', ...USER, '-T', path, '-H', 'Content-Range: bytes 0-1999/4000', url('team', 'by%20mount')],
    ] as const)
      assert.equal(String((await curl(...args)).status), expected, args.join(' '));
    assert.equal(await nas.checksum('archive/old.bin'), old);
    const tunnel = await runClient('curl', [
      '-sS',
      '-x',
      `http://127.0.0.1:${port}`,
      '-p',
      'http://127.0.0.1:22/',
    ]);
    assert.notEqual(tunnel.code, 0);
    assert.match(tunnel.output, /405/);
    const { symlink } = await import('node:fs/promises');
    await symlink('/etc', nas.path('team/way out'));
    assert.equal((await dav(url('team', 'way%20out/passwd'))).status, 404);
  });

  it('leaves the file as it was when a client goes away in the middle of it', async () => {
    const good = randomBytes(2_000_000);
    await writeFile(scratch.path('good'), good);
    assert.equal((await dav('-T', scratch.path('good'), url('team', 'kept.bin'))).status, 201);
    await localFile(scratch, 'other', 40_000_000);
    for (const name of ['kept.bin', 'fresh.bin']) {
      const { child, ended } = slowly('-T', scratch.path('other'), url('team', name));
      await new Promise((resolve) => setTimeout(resolve, 700));
      child.kill('SIGKILL');
      await ended;
    }
    await until(
      'the torn new file is gone',
      async () => (await dav('-I', url('team', 'fresh.bin'))).status === 404,
      { timeoutMs: 20_000 },
    );
    assert.equal((await dav('-o', scratch.path('back2'), url('team', 'kept.bin'))).status, 200);
    assert.equal(await sumOf(scratch.path('back2')), await sumOf(scratch.path('good')));
    await daemon.synced(60_000);
    assert.equal(await nas.checksum('team/kept.bin'), await sumOf(scratch.path('good')));
    assert.equal(await nas.has('team/fresh.bin'), false);
  });

  it('brings 50 files that clients overwrote to the NAS within 15 s', async () => {
    const sums = new Map<string, string>();
    for (const round of ['first', 'second']) {
      const transfers: string[] = [];
      for (let index = 0; index < 50; index += 1) {
        const { path, sum } = await localFile(
          scratch,
          `${round}-${index}`,
          index === 0 ? 500_000 : 20_000 + index,
        );
        sums.set(`team/over ${index}.bin`, sum);
        transfers.push('-T', path, url('team', `over%20${index}.bin`));
      }
      const { output } = await runClient('curl', ['-sS', '--fail', ...USER, ...transfers]);
      assert.doesNotMatch(output, /error/i);
    }
    await until(
      'all are on the NAS',
      async () => {
        for (const [name, sum] of sums)
          if (!(await nas.has(name)) || (await nas.checksum(name)) !== sum) return false;
        return true;
      },
      { timeoutMs: 15_000, everyMs: 300 },
    );
  });

  it('goes on for a client whose share is killed, and for all others', async () => {
    const other = slowly('-o', scratch.path('long'), url(PHOTOS, 'long.bin'));
    process.kill(await daemon.rclonePid('team'), 'SIGKILL');
    const killed = performance.now();
    const { status } = await dav(
      '-T',
      scratch.path('good'),
      url('team', 'after kill.bin'.replace(/ /g, '%20')),
    );
    assert.equal(status, 201);
    assert.equal((await dav('-o', scratch.path('back3'), url('team', 'after%20kill.bin'))).status, 200);
    assert.ok(performance.now() - killed < 5_000, `after ${Math.round(performance.now() - killed)} ms`);
    assert.equal(await sumOf(scratch.path('back3')), await sumOf(scratch.path('good')));
    assert.equal(await other.ended, 0);
    assert.equal(await sumOf(scratch.path('long')), await nas.checksum('photos/long.bin'));
  });

  it('keeps transfers through a change of other shares and the death of the daemon', async () => {
    const old = await proxyPid();
    const up = slowly('-T', scratch.path('other'), url(PHOTOS, 'long up.bin'.replace(/ /g, '%20')));
    const shares = daemon.traits.shares.filter(({ name }) => name !== 'archive');
    await daemon.submit(daemon.text({ shares }));
    await until('the share is gone', async () => (await dav(url('archive', 'old.bin'))).status === 404, {
      timeoutMs: 30_000,
    });
    await daemon.submit(daemon.text());
    await until(
      'the share is back',
      async () => (await dav('-o', '/dev/null', url('archive', 'old.bin'))).status === 200,
      { timeoutMs: 30_000 },
    );
    await daemon.end();
    assert.equal((await dav('-o', '/dev/null', url(PHOTOS, 'from%20nas.bin'))).status, 200);
    await daemon.start();
    await until('WebDAV is said to be served', async () => (await exportStatus(daemon)).webdav_running, {
      timeoutMs: 20_000,
    });
    assert.equal(await proxyPid(), old);
    assert.equal(await up.ended, 0);
    assert.equal(
      await files.checksum(`${daemon.mountPoint(PHOTOS)}/long up.bin`),
      await sumOf(scratch.path('other')),
    );
  });

  it('serves again within 3 s of a kill -9 of the proxy, and clears up after it', async () => {
    const old = await proxyPid();
    assert.ok(old !== undefined);
    const torn = slowly('-T', scratch.path('other'), url('team', 'torn.bin'));
    await until(
      'the upload is under way',
      async () => (await dav('-I', url('team', 'torn.bin'))).status === 200,
      { timeoutMs: 30_000 },
    );
    process.kill(old, 'SIGKILL');
    const killed = performance.now();
    await until(
      'it serves again',
      async () => (await dav('-o', '/dev/null', url(PHOTOS, 'from%20nas.bin'))).status === 200,
      { timeoutMs: 30_000, everyMs: 20 },
    );
    assert.ok(
      performance.now() - killed < 3_000 * SLOW_MACHINE,
      `back after ${Math.round(performance.now() - killed)} ms`,
    );
    // It may need a moment to give its memory back.
    await until('nothing is left of the former one', () => !isAlive(old), { timeoutMs: 20_000 });
    assert.notEqual(await torn.ended, 0);
    await until(
      'the torn file is gone',
      async () => (await dav('-I', url('team', 'torn.bin'))).status === 404,
      { timeoutMs: 20_000 },
    );
  });

  it('leaves nothing torn on the NAS when it is stopped in the middle of an upload', async () => {
    const last = slowly('-T', scratch.path('other'), url('team', 'last.bin'));
    await until('it is under way', async () => (await dav('-I', url('team', 'last.bin'))).status === 200, {
      timeoutMs: 30_000,
    });
    assert.equal((await daemon.stop()).code, 0);
    assert.notEqual(await last.ended, 0);
    assert.equal(await nas.has('team/last.bin'), false);
    assert.equal(await proxyPid(), undefined);
    await daemon.start();
    await daemon.healthy();
    await daemon.synced(60_000);
    assert.equal(await nas.has('team/last.bin'), false);
  });

  it('says what is wrong, and is off when switched off', async () => {
    const { createServer } = await import('node:net');
    const holder = createServer().listen(0, '127.0.0.1');
    scratch.defer(() => holder.close());
    await once(holder, 'listening');
    const { port: taken } = holder.address() as { port: number };
    await daemon.submit(daemon.text({ sections: { webdav: { port: taken } } }));
    await until(
      'the taken port is told',
      async () => (await daemon.get('/api/notices')).text.includes(`port ${taken} on 127.0.0.1 is taken`),
      { timeoutMs: 30_000 },
    );
    await flagged(daemon, { webdav_running: false });
    await daemon.submit(daemon.text({ sections: { webdav: { enabled: false } } }));
    await until('nothing of the proxy is left', async () => (await proxyPid()) === undefined, {
      timeoutMs: 30_000,
    });
    assert.equal((await daemon.stop()).code, 0);
    await until(
      'nothing serves any more',
      async () =>
        !(await allProcesses()).some(
          ({ command }) => command.includes(daemon.mountRoot) && command.includes('serve'),
        ),
      { timeoutMs: 20_000 },
    );
  });
});
