/** The command socket: for root and the daemon's user alone, and for them without a password. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { askOverSocket } from '../../../core/cli/command-socket.ts';
import { COMMAND_SOCKET } from '../../../core/http/command-socket.ts';
import { isFromCommandSocket } from '../../../core/sdk/http/command-connections.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { until } from '../../support/platform/wait.ts';
import { ask, createServer, ledger } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';
import { unlessRoot } from '../../runner/skips.ts';

const NOBODY = 65_534;
const asRoot = { skip: unlessRoot };

describe('the command socket', () => {
  let server: TestServer;
  let dir: string;
  let answerSlow: () => void;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mountkeeper-socket-'));
    server = await createServer({ limits: { letGoMs: 10_000 } });
    const slow = new Promise<void>((resolve) => {
      answerSlow = resolve;
    });
    await server.swap(
      ledger('page', {
        guard: true,
        routes: [
          {
            method: ['GET', 'POST'],
            path: '/who',
            handler: ({ raw, payload }) => ({ isAdmin: isFromCommandSocket(raw.req), payload }),
          },
          {
            method: 'GET',
            path: '/slow',
            handler: async () => {
              await slow;
              return 'slow';
            },
          },
        ],
      }),
    );
  });
  afterEach(async () => {
    answerSlow();
    await server.http.close();
    await rm(dir, { recursive: true, force: true });
  });

  const socket = (): string => join(dir, COMMAND_SOCKET);
  const overSocket = (path: string, body?: object) =>
    askOverSocket(
      dir,
      { method: body ? 'POST' : 'GET', path, ...(body && { body }) },
      AbortSignal.timeout(20_000),
    );
  /** What a process of the user `nobody` gets when it connects. */
  const asNobody = async (): Promise<string> => {
    const code =
      `require('node:net').connect(${JSON.stringify(socket())})` +
      ".on('connect', () => console.log('in')).on('error', (e) => console.log(e.code)).unref()";
    const child = spawn(
      process.execPath,
      ['-e', `${code}; setTimeout(() => {}, 2000).unref(); setTimeout(() => process.exit(), 500)`],
      { uid: NOBODY, gid: NOBODY, cwd: '/' },
    );
    let said = '';
    child.stdout.on('data', (piece: Buffer) => {
      said += piece.toString();
    });
    await once(child, 'close');
    return said.trim();
  };

  it('has mode 0600, and tells its requests from those over TCP by their connection alone', async () => {
    await server.http.listenForCommands(dir);
    assert.equal((await stat(socket())).mode & 0o777, 0o600);
    assert.deepEqual(await overSocket('/who', { a: '你好' }), {
      status: 200,
      body: '{"isAdmin":true,"payload":{"a":"你好"}}',
    });
    for (const headers of [{}, { host: 'localhost' }, { 'x-forwarded-for': 'unix:' }]) {
      assert.match((await ask({ port: server.port, path: '/who', headers })).body, /"isAdmin":false/);
    }
  });

  it('lets its users in while a guard that is not up keeps all others out', async () => {
    await server.http.listenForCommands(dir);
    server.inactive.add('page');
    assert.equal((await ask({ port: server.port, path: '/nothing' })).status, 503);
    assert.deepEqual(
      await overSocket('/nothing').then((answer) => typeof answer === 'object' && answer.status),
      404,
    );
  });

  it(
    'cannot be opened by another user, neither in its folder nor when the folder is open',
    asRoot,
    async () => {
      await server.http.listenForCommands(dir);
      assert.equal(await asNobody(), 'EACCES');
      await letOthersEnter(dir);
      assert.equal(await asNobody(), 'EACCES');
      await chmod(socket(), 0o666);
      assert.equal(await asNobody(), 'in', 'the test can fail');
    },
  );

  it('takes the place of one that was left by a daemon that was killed, and goes when it is closed', async (t) => {
    const left = createTcpServer().listen(socket());
    t.after(() => new Promise((resolve) => left.close(resolve)));
    await once(left, 'listening');
    await chmod(socket(), 0o777);
    // Closing it would remove its name; a kill does not.
    await server.http.listenForCommands(dir);
    assert.equal(typeof (await overSocket('/who')), 'object');
    const slow = overSocket('/slow');
    await until('the request runs', () => server.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    const closed = server.http.close();
    await until('the name is gone', () => !existsSync(socket()), { timeoutMs: 20_000, everyMs: 5 });
    answerSlow();
    assert.deepEqual(await slow, { status: 200, body: 'slow' });
    await closed;
  });

  it("is there however long the folder's name is", async () => {
    const scratch = dir;
    try {
      dir = join(scratch, 'a'.repeat(120));
      await mkdir(dir, { mode: 0o700 });
      await server.http.listenForCommands(dir);
      assert.equal(typeof (await overSocket('/who')), 'object');
    } finally {
      dir = scratch;
    }
  });

  it(
    'is not believed where others could have put it, and not there where nobody listens',
    asRoot,
    async () => {
      assert.equal(await overSocket('/who'), 'absent');
      await writeFile(socket(), '', { mode: 0o600 });
      assert.equal(await overSocket('/who'), 'absent');
      await server.http.listenForCommands(dir);
      assert.equal(typeof (await overSocket('/who')), 'object');
      await chmod(dir, 0o777);
      assert.equal(await overSocket('/who'), 'absent');
      await chmod(dir, 0o700);
      await chmod(socket(), 0o666);
      assert.equal(await overSocket('/who'), 'absent');
    },
  );
});
