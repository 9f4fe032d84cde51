import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { findTarget, request } from '../../../core/cli/client.js';
import type { ClientOptions } from '../../../core/cli/client.js';
import { createSecrets } from '../../../core/config/secrets/secrets.js';
import { readPair } from '../../../core/platform/certificates/pair.js';
import { ensureSelfMade, selfMadeFiles } from '../../../core/platform/certificates/self-made.js';
import { spokenScheme } from '../../../core/cli/spoken-scheme.js';
import { SecureServer } from '../../../core/sdk/http/secure-server.js';

async function options(
  t: TestContext,
  text: string,
  change: Partial<ClientOptions> = {},
): Promise<ClientOptions> {
  const dir = await mkdtemp(join(tmpdir(), 'mountkeeper-client-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const configFile = join(dir, 'mountkeeper.toml');
  await writeFile(configFile, text);
  await writeFile(join(dir, 'password'), 'from a file\n');
  return {
    configFile,
    url: undefined,
    env: {},
    secrets: createSecrets({ env: {} }),
    signal: new AbortController().signal,
    ...change,
  };
}

async function daemon(
  t: TestContext,
  answer: (incoming: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

describe('client of the command line', () => {
  it('finds the daemon where nothing is said', async (t) => {
    const found = await findTarget(await options(t, '', { configFile: '/nowhere/mountkeeper.toml' }));
    assert.deepEqual(found, { url: 'http://127.0.0.1:8090', authorization: undefined });
  });

  for (const [listen, url] of [
    ['0.0.0.0', 'http://127.0.0.1:9'],
    ['::', 'http://[::1]:9'],
    ['fd00::1', 'http://[fd00::1]:9'],
    ['192.0.2.7', 'http://192.0.2.7:9'],
  ] as const) {
    it(`reaches a daemon that listens on ${listen}`, async (t) => {
      assert.equal((await findTarget(await options(t, `[web]\nlisten = "${listen}"\nport = 9\n`))).url, url);
    });
  }

  it('reaches one that speaks TLS, and sends nothing where the certificate is not trusted', async (t) => {
    const found = await options(t, '[web]\nport = 9\ntls = { self_made = true }\n');
    assert.equal((await findTarget(found)).url, 'https://127.0.0.1:9');
    const stateDir = dirname(found.configFile);
    const files = selfMadeFiles(stateDir);
    await ensureSelfMade({ files, names: [], now: Date.now() });
    let count = 0;
    const server = new SecureServer({}, readPair(files)).on('request', (_, response: ServerResponse) => {
      count += 1;
      response.end('up');
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    t.after(() => void server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const call = { method: 'GET', path: '/' } as const;
    await assert.rejects(
      request({ ...found, url, env: { MOUNTKEEPER_PASSWORD: 'geheim' } }, call),
      /DEPTH_ZERO_SELF_SIGNED_CERT.*NODE_EXTRA_CA_CERTS/,
    );
    assert.equal(count, 0);
  });

  const named = { env: { MOUNTKEEPER_URL: 'http://127.0.0.1:9' } };

  it("takes the file's password for a given address, also one from a file beside it", async (t) => {
    assert.equal(
      (await findTarget(await options(t, '[web]\npassword = "geheim"\nusername = "me"\n', named)))
        .authorization,
      basic('me:geheim'),
    );
    assert.equal(
      (
        await findTarget(
          await options(t, '[web]\npassword = { file = "password" }\n', { url: 'http://127.0.0.1:9' }),
        )
      ).authorization,
      basic('admin:from a file'),
    );
  });

  it('keeps the password of the file from whoever listens at the usual address', async (t) => {
    const found = await options(t, '[web]\npassword = "geheim"\n');
    assert.equal((await findTarget(found)).authorization, undefined);
    assert.equal(
      (await findTarget({ ...found, env: { MOUNTKEEPER_PASSWORD: 'given' } })).authorization,
      basic('admin:given'),
    );
  });

  it('sends no hash and nothing that it does not know', async (t) => {
    assert.equal(
      (await findTarget(await options(t, '[web]\npassword = "scrypt$16384$8$1$abc$def"\n', named)))
        .authorization,
      undefined,
    );
    assert.equal(
      (await findTarget(await options(t, '[web]\npassword = { env = "MISSING" }\n', named))).authorization,
      undefined,
    );
  });

  it('prefers the environment and the address given', async (t) => {
    const found = await findTarget(
      await options(t, '[web]\npassword = "old"\n', {
        env: { MOUNTKEEPER_PASSWORD: 'new', MOUNTKEEPER_URL: 'http://a:1' },
        url: 'https://b:2/',
      }),
    );
    assert.deepEqual(found, { url: 'https://b:2', authorization: basic('admin:new') });
    const named = await findTarget(await options(t, '', { url: 'http://me:p%40ss@b:2/mk/' }));
    assert.deepEqual(named, { url: 'http://b:2/mk', authorization: basic('me:p@ss') });
  });

  it('says so when the address is none', async (t) => {
    await assert.rejects(
      findTarget(await options(t, '', { url: 'localhost:8090' })),
      /is not the address of a daemon/,
    );
  });

  it('says so when nobody answers, and when the password is asked for or wrong', async (t) => {
    await assert.rejects(
      request(await options(t, '', { url: 'http://127.0.0.1:1' }), { method: 'GET', path: '/api/status' }),
      /no daemon answers at http:\/\/127\.0\.0\.1:1/,
    );
    const url = await daemon(t, (_, response) => response.writeHead(401).end());
    await assert.rejects(
      request(await options(t, '', { url }), { method: 'GET', path: '/' }),
      /asks for a password/,
    );
    await assert.rejects(
      request(await options(t, '[web]\npassword = "x"\n', { url }), { method: 'GET', path: '/' }),
      /refuses the password/,
    );
  });

  it('sends a body as JSON and hands the answer on', async (t) => {
    const url = await daemon(t, (incoming, response) => {
      let body = '';
      incoming.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      incoming.on('end', () =>
        response
          .writeHead(400)
          .end(`${incoming.method} ${incoming.url} ${incoming.headers['content-type']} ${body}`),
      );
    });
    const answer = await request(await options(t, '', { url }), {
      method: 'POST',
      path: '/api/bwlimit',
      body: { up: '1M' },
    });
    assert.deepEqual(answer, { status: 400, body: 'POST /api/bwlimit application/json {"up":"1M"}' });
  });

  describe('with a command socket', () => {
    /**
     * A daemon's socket in the state folder of the configuration, beside one at the web address; each says
     * who it is.
     */
    async function both(
      t: TestContext,
      answer = (_: IncomingMessage, response: ServerResponse): void => {
        response.end('socket');
      },
    ): Promise<ClientOptions & { readonly stateDir: string }> {
      const url = await daemon(t, (_, response) => {
        response.end('tcp');
      });
      const found = await options(
        t,
        `[web]\nport = ${new URL(url).port}\n[supervisor]\nstate_dir = "state"\n`,
      );
      const stateDir = join(dirname(found.configFile), 'state');
      await mkdir(stateDir, { mode: 0o700 });
      const server = createServer(answer);
      await new Promise<void>((resolve) => {
        server.listen(join(stateDir, 'command.sock'), resolve);
      });
      await chmod(join(stateDir, 'command.sock'), 0o600);
      t.after(
        () =>
          new Promise((resolve) => {
            server.close(resolve);
            server.closeAllConnections();
          }),
      );
      return { ...found, stateDir };
    }
    const get = { method: 'GET', path: '/' } as const;

    it('goes that way, and with no password at all', async (t) => {
      let seen: IncomingHttpHeaders = {};
      const found = await both(t, (incoming, response) => {
        seen = incoming.headers;
        response.end('socket');
      });
      assert.equal(
        (await request({ ...found, env: { MOUNTKEEPER_PASSWORD: 'secret' } }, get)).body,
        'socket',
      );
      assert.deepEqual([seen.authorization, seen.host], [undefined, 'localhost']);
    });

    it('goes to the address where one is given', async (t) => {
      const found = await both(t);
      const { url } = await findTarget(found);
      assert.equal((await request({ ...found, url }, get)).body, 'tcp');
      assert.equal((await request({ ...found, env: { MOUNTKEEPER_URL: url } }, get)).body, 'tcp');
    });

    it("does not try the usual address when the socket is gone, stale or another user's", async (t) => {
      const found = await both(t);
      const noDaemon = (): Promise<void> =>
        assert.rejects(
          request({ ...found, env: { MOUNTKEEPER_PASSWORD: 'secret' } }, get),
          /no daemon answers over a socket of its own in \S+state; is it running\?/,
        );
      await chmod(found.stateDir, 0o770);
      await noDaemon();
      await chmod(found.stateDir, 0o700);
      assert.equal((await request(found, get)).body, 'socket');
      await chmod(join(found.stateDir, 'command.sock'), 0o606);
      await noDaemon();
      await rm(join(found.stateDir, 'command.sock'));
      await noDaemon();
      await writeFile(join(found.stateDir, 'command.sock'), '');
      await noDaemon();
      await rm(found.stateDir, { recursive: true });
      await noDaemon();
    });

    it('asks once: what was sent and not answered is not sent again over TCP', async (t) => {
      let asked = 0;
      const found = await both(t, ({ socket }) => {
        asked += 1;
        socket.destroy();
      });
      await assert.rejects(
        request(found, { method: 'POST', path: '/' }),
        /the daemon does not answer over its socket in \S+state/,
      );
      assert.equal(asked, 1);
    });

    it('does not pass over a configuration that was named and cannot be read', async (t) => {
      const found = await both(t);
      await assert.rejects(
        request({ ...found, configFile: `${found.configFile}.not`, isConfigNamed: true }, get),
        /there is no such file/,
      );
    });

    it('is interrupted there, too', async (t) => {
      const interrupt = new AbortController();
      const found = await both(t, () => interrupt.abort(new Error('interrupted')));
      await assert.rejects(request({ ...found, signal: interrupt.signal }, get), /interrupted/);
    });
  });

  it('finds out whether a server speaks TLS, and sends it nothing', async (t) => {
    const { signal } = new AbortController();
    let asked = 0;
    const plain = await daemon(t, (_, response) => {
      asked += 1;
      response.end();
    });
    assert.equal(await spokenScheme(new URL(plain), signal), 'http');
    const dir = await mkdtemp(join(tmpdir(), 'mountkeeper-client-'));
    t.after(() => rm(dir, { recursive: true, force: true }));
    const files = selfMadeFiles(dir);
    await ensureSelfMade({ files, names: [], now: Date.now() });
    const server = new SecureServer({}, readPair(files)).on('request', () => (asked += 1));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    assert.equal(await spokenScheme(new URL(`http://127.0.0.1:${port}`), signal), 'https');
    assert.equal(await spokenScheme(new URL('http://127.0.0.1:1'), signal), 'http');
    assert.equal(asked, 0);
  });

  it('ends as soon as it is interrupted', async (t) => {
    const interrupt = new AbortController();
    const url = await daemon(t, () => interrupt.abort(new Error('interrupted')));
    await assert.rejects(
      request(await options(t, '', { url, signal: interrupt.signal }), { method: 'GET', path: '/' }),
      /interrupted/,
    );
  });
});
