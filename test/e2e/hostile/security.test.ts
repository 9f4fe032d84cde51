/** Who is kept out, and what is kept secret. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { applied } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { createAuthority } from '../../support/http/certificates.ts';
import { NAS_PASSWORD, Nas } from '../../support/nas/nas.ts';
import { processesNaming } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { timed, until, within } from '../../support/platform/wait.ts';

const WEB_PASSWORD = 'w3b-Geheim-4412';

function rawStatus(
  port: number,
  headers: Record<string, string>,
  options: { method?: string; path?: string; body?: string } = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(
      {
        port,
        host: '127.0.0.1',
        path: options.path ?? '/api/status',
        method: options.method ?? 'GET',
        headers,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    call.once('error', reject);
    call.end(options.body);
  });
}

async function neverFinishing(port: number): Promise<void> {
  const socket = createConnection(port, '127.0.0.1');
  socket.write('GET /api/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
  await new Promise<void>((resolve) =>
    socket
      .on('error', () => undefined)
      .once('close', () => resolve())
      .resume(),
  );
}

describe('security', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  /**
   * The milliseconds that a client was borne who sends half of his headers. It is begun early, since that
   * takes a while.
   */
  let slowClient: Promise<number>;
  const authorization = `Basic ${Buffer.from(`admin:${WEB_PASSWORD}`).toString('base64')}`;

  before(async () => {
    scratch = await createScratch('safe');
    nas = await Nas.create(scratch, { files: { 'x.bin': 100_000 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { log: { level: 'debug' } },
    });
    await daemon.start();
    slowClient = timed(neverFinishing(daemon.port));
    await daemon.healthy();
  });
  after(() => scratch.close());

  describe('a configuration that comes over HTTP', () => {
    const trap = (): string => scratch.path('trap-was-run');
    const withOptions = (options: Record<string, string>): string =>
      daemon.text({
        connections: [
          { ...nas.connection('nas'), options: { ...nas.connection('nas').options, ...options } },
        ],
      });

    for (const [what, text] of [
      ["sftp's ssh", () => withOptions({ ssh: `touch ${trap()}` })],
      [
        'a new connection with a bearer_token_command',
        () =>
          daemon.text({
            connections: [
              nas.connection('nas'),
              {
                name: 'dav',
                type: 'webdav',
                options: { url: 'http://127.0.0.1:1', bearer_token_command: `touch ${trap()}` },
              },
            ],
          }),
      ],
      ["sftp's server_command", () => withOptions({ server_command: `touch ${trap()}` })],
      ["sftp's md5sum_command", () => withOptions({ md5sum_command: `touch ${trap()}` })],
      ['another rclone binary', () => daemon.text({ sections: { mount: { rclone: `${trap()}.sh` } } })],
      [
        'folders of third-party plugins',
        () => daemon.text({ sections: { plugins: { dirs: [scratch.root] } } }),
      ],
    ] as const) {
      it(`may not bring in ${what}`, async () => {
        const before = await readFile(daemon.configFile, 'utf8');
        const answer = await daemon.submit(text());
        assert.equal(answer.status, 400, answer.text);
        assert.match(answer.body.message, /^Validation error: ./);
        assert.equal(await readFile(daemon.configFile, 'utf8'), before);
        assert.equal(existsSync(trap()), false);
      });
    }

    it('may leave what the file on disk brought in as it is', async () => {
      // A command that is harmless and never run here, since the share is not mounted.
      const text = daemon.text({
        connections: [
          nas.connection('nas'),
          { name: 'other', type: 'sftp', options: { host: '127.0.0.1', port: '1', md5sum_command: 'false' } },
        ],
      });
      await daemon.writeConfig(text);
      await until(
        'the file is taken',
        async () => (await daemon.get('/api/config')).text.includes('"other"'),
        { timeoutMs: 20_000 },
      );
      const answer = await daemon.submit(`${text}\n[bandwidth]\nup = "5M"\n`);
      assert.deepEqual([answer.status, answer.body.ok], [200, true], answer.text);
      await daemon.writeConfig(daemon.text());
      await until(
        'the file is taken',
        async () => !(await daemon.get('/api/config')).text.includes('"other"'),
        { timeoutMs: 20_000 },
      );
    });
  });

  it('no secret stands in a command line, a log, the status or the configuration that is shown', async () => {
    const secrets = [NAS_PASSWORD];
    for (const process of (await processesNaming(scratch.root)).filter(
      (one) => !one.args.includes('serve'),
    )) {
      for (const secret of secrets) assert.ok(!process.command.includes(secret), process.command);
    }
    const shown = [
      await daemon.log(),
      await daemon.output(),
      (await daemon.get('/api/status')).text,
      (await daemon.get('/api/config')).text,
      (await daemon.get('/api/logs?lines=10000')).text,
    ];
    for (const text of shown) for (const secret of secrets) assert.ok(!text.includes(secret));
    assert.match((await daemon.get('/api/config')).text, /"pass":"\*{8}"/);
    const changed = await daemon.submit(
      daemon.text({
        connections: [
          { ...nas.connection('nas'), options: { ...nas.connection('nas').options, pass: 'other-Pass-9' } },
        ],
      }),
    );
    assert.ok(!changed.text.includes('other-Pass-9') && !changed.text.includes(NAS_PASSWORD), changed.text);
    // Else it might still be carried out after the one that puts the right password back.
    await until('the other password is tried', async () => (await daemon.share('work')).health === 'failed', {
      timeoutMs: 30_000,
    });
    await applied(daemon, daemon.text());
    const masked = await daemon.submit(daemon.text().replaceAll(NAS_PASSWORD, '********'));
    assert.equal(masked.status, 400, 'the mask is refused as a secret');
  });

  it('state is for its owner alone: files 0600, folders 0700; a socket lies behind them', async () => {
    const open: string[] = [];
    for (const folder of [daemon.stateDir, daemon.cacheDir]) {
      if (((await stat(folder)).mode & 0o077) !== 0) open.push(folder);
    }
    for (const entry of await readdir(daemon.stateDir, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      // What is gone by now is open to nobody.
      const seen =
        entry.isSymbolicLink() || entry.isSocket() ? undefined : await stat(path).catch(() => undefined);
      if (seen !== undefined && (seen.mode & 0o077) !== 0) open.push(path);
    }
    assert.deepEqual(open, []);
  });

  it('a Host header of somebody else is refused; localhost and addresses are not', async () => {
    for (const host of ['evil.example', `evil.example:${daemon.port}`, 'localhost.evil.example']) {
      const status = await rawStatus(daemon.port, { host });
      assert.ok(status >= 400 && status < 500, `${host} ${status}`);
    }
    for (const host of [`localhost:${daemon.port}`, `127.0.0.1:${daemon.port}`, '[::1]', 'LOCALHOST'])
      assert.equal(await rawStatus(daemon.port, { host }), 200, host);
  });

  it('a request that another site sent is refused where it could change something', async () => {
    const host = `127.0.0.1:${daemon.port}`;
    const post = { method: 'POST', path: '/api/bwlimit', body: '{}' };
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'null' },
    ]) {
      const status = await rawStatus(
        daemon.port,
        { host, 'content-type': 'text/plain', ...headers } as Record<string, string>,
        post,
      );
      assert.ok(status >= 400 && status < 500, `${JSON.stringify(headers)} ${status}`);
    }
    assert.equal(
      await rawStatus(
        daemon.port,
        { host, 'content-type': 'application/json', origin: `http://${host}` },
        post,
      ),
      200,
    );
  });

  it('a client that never finishes its headers is let go', async () => {
    const ms = await within('the connection is closed', 45_000, slowClient);
    assert.ok(ms > 5_000, `it was closed for another reason after ${ms} ms`);
  });

  it('a password is asked for by everything but /healthz, and wrong ones are slowed down', async () => {
    const answer = await daemon.submit(daemon.text({ sections: { web: { password: WEB_PASSWORD } } }));
    assert.equal(answer.status, 200, answer.text);
    await until('the password is asked for', async () => (await daemon.get('/api/status')).status === 401, {
      timeoutMs: 20_000,
    });
    for (const path of ['/api/status', '/api/config', '/api/logs', '/', '/no-such-path'])
      assert.equal((await daemon.get(path)).status, 401, path);
    assert.equal((await daemon.get('/healthz')).status, 200);
    const wrongMs: number[] = [];
    for (let index = 0; index < 4; index += 1) {
      const wrong = { authorization: `Basic ${Buffer.from(`admin:guess-${index}`).toString('base64')}` };
      wrongMs.push(await timed(daemon.request('GET', '/api/status', undefined, wrong)));
    }
    assert.ok(Math.max(...wrongMs) > 200, `wrong passwords took ${wrongMs.map(Math.round).join(', ')} ms`);
    assert.equal((await daemon.request('GET', '/api/status', undefined, { authorization })).status, 200);
    assert.equal((await daemon.cli('status')).code, 0);
    const log = await daemon.log();
    assert.ok(!log.includes(WEB_PASSWORD) && !log.includes(authorization.slice(6)));
    assert.ok(
      !(await daemon.request('GET', '/api/config', undefined, { authorization })).text.includes(WEB_PASSWORD),
    );
  });

  it('TLS alone is spoken where the file says so, and the certificate can be looked up', async () => {
    const { certificate, key } = await (await createAuthority(scratch.path('ca'))).issue('site');
    const root = scratch.path('ca', 'root.pem');
    const url = (scheme: string): string => `${scheme}://localhost:${daemon.port}/healthz`;
    const curl = async (...args: string[]): Promise<string> =>
      (await runClient('curl', ['-sS', '--max-time', '10', ...args])).output.trim();
    const withTls = (tls: Record<string, string | boolean>): Promise<void> =>
      daemon.writeConfig(daemon.text({ sections: { web: { password: WEB_PASSWORD, tls } } }));
    const served = (ca: string): Promise<unknown> =>
      until('TLS is spoken', async () => (await curl('--cacert', ca, url('https'))) === 'ok', {
        timeoutMs: 30_000,
      });
    await withTls({ certificate, key });
    await served(root);
    assert.doesNotMatch(await curl(url('http')), /ok$/);
    const old = ['-connect', `127.0.0.1:${daemon.port}`, '-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0'];
    assert.notEqual((await runClient('openssl', ['s_client', ...old])).code, 0);
    assert.equal((await daemon.cli('status')).code, 0);
    await withTls({ self_made: true });
    const own = join(daemon.stateDir, 'tls', 'certificate.pem');
    await served(own);
    assert.equal((await stat(join(daemon.stateDir, 'tls', 'key.pem'))).mode & 0o777, 0o600);
    const { fingerprint256 } = new X509Certificate(await readFile(own));
    assert.ok((await daemon.log()).includes(fingerprint256));
    assert.ok((await daemon.cli('doctor')).stdout.includes(fingerprint256));
  });

  it('listening further than loopback without a password is warned of', async () => {
    await daemon.writeConfig(daemon.text({ sections: { web: { listen: '0.0.0.0' } } }));
    await until(
      'the log warns',
      async () => /warn.*open to other machines without a password/i.test(await daemon.log()),
      { timeoutMs: 20_000 },
    );
  });
});
