/** A server beside a mount: a program of the test's that listens as `rclone serve webdav` does. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { BACKEND_PREFIX, SeparateBackend } from '../../../../plugins/webdav/backends/separate-backend.ts';
import { giveFolders } from '../../../../plugins/webdav/exporter/folders.ts';
import { preparePaths, webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import type { WebdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import type { Backend } from '../../../../plugins/webdav/proxy/state.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { letOthersEnter } from '../../../support/platform/folder-access.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';

const PROXY = { uid: 61_001, gid: 61_002 };
const SERVER = `#!${process.execPath}
const { RCLONE_USER: user, RCLONE_PASS: pass } = process.env;
const login = 'Basic ' + Buffer.from(user + ':' + pass).toString('base64');
const [, where] = process.argv.find((one) => one.startsWith('--addr=')).split('=');
const [host, port] = where.split(':');
require('node:http')
  .createServer((request, response) =>
    response.writeHead(request.headers.authorization === login ? 207 : 401).end())
  .listen(...(host === 'unix' ? [where.slice('unix://'.length)] : [Number(port), host]));
`;

describe('a server beside a mount', () => {
  let scratch: Scratch;
  let paths: WebdavPaths;
  let processes: Processes & { releaseAll(): void };
  let running: SeparateBackend | undefined;
  const clock = createClock();
  const { log } = collectLog();

  beforeEach(async () => {
    scratch = await createScratch('beside');
    await mkdir(scratch.path('state'));
    paths = webdavPaths(scratch.path('state'));
    await preparePaths(paths);
    await writeFile(scratch.path('rclone'), SERVER, { mode: 0o755 });
    processes = createProcesses({ stateDir: scratch.path('state'), clock, log });
  });
  afterEach(async () => {
    await running?.stop();
    running = undefined;
    processes.releaseAll();
    await scratch.close();
  });

  const start = (): SeparateBackend =>
    (running = new SeparateBackend({
      clock,
      log,
      processes,
      paths,
      share: 'team',
      mountPoint: '/mnt/team',
      mountPid: process.pid,
      rclone: scratch.path('rclone'),
      onReady: () => undefined,
    }));
  const served = (by: SeparateBackend, former?: Backend): Promise<Backend> =>
    until(
      'it serves',
      () => (by.backend && by.backend.instance !== former?.instance ? by.backend : undefined),
      { timeoutMs: 20_000, everyMs: 10 },
    );
  const pidOf = ({ instance }: Backend): number => Number(instance.split(' ')[1]);
  /** Curl's exit code: 0 with any answer, 7 when there is no connection. */
  const asked = async (socket: string, user: { uid: number; gid: number }): Promise<number> => {
    const child = spawn('curl', ['-sS', '--unix-socket', socket, 'http://localhost/'], {
      ...user,
      cwd: '/',
      stdio: 'ignore',
    });
    const [code] = (await once(child, 'exit')) as [number];
    return code;
  };

  it('listens on no port, which others could take before it and be sent its password', async () => {
    const backend = await served(start());
    assert.equal(dirname(backend.socketPath ?? ''), paths.sockets);
    assert.equal(backend.port, undefined);
    const command = await readFile(`/proc/${pidOf(backend)}/cmdline`, 'utf8');
    assert.match(command, new RegExp(`--addr=unix://${backend.socketPath}`));
    assert.doesNotMatch(command, /127\.0\.0\.1/);
  });

  it('is reached by the proxy, and by no other user', { skip: unlessRoot }, async () => {
    await giveFolders(paths, scratch.path('spool'), PROXY);
    const { socketPath = '' } = await served(start());
    // Whoever may come down to that folder.
    await letOthersEnter(paths.root);
    assert.equal((await stat(paths.sockets)).mode & 0o777, 0o710);
    assert.equal(await asked(socketPath, PROXY), 0);
    for (const gid of [65_534, 61_003]) assert.equal(await asked(socketPath, { uid: 65_534, gid }), 7);
  });

  it('is found elsewhere when it was killed: nobody takes it for the former one', async () => {
    const server = start();
    const former = await served(server);
    process.kill(pidOf(former), 'SIGKILL');
    const { socketPath = '' } = await served(server, former);
    assert.notEqual(socketPath, former.socketPath);
    assert.deepEqual(await readdir(paths.sockets), [basename(socketPath)]);
  });

  it('goes on when the daemon is another one', async () => {
    const former = start();
    const backend = await served(former);
    await former.release();
    assert.deepEqual(await served(start()), backend);
  });

  it('goes on at the port that a former version has given it, and has none after it', async () => {
    const port = await freePort();
    const password = 'of a former version';
    const fingerprint = createHash('sha256')
      .update(JSON.stringify(['team', '/mnt/team', scratch.path('rclone')]))
      .digest('hex')
      .slice(0, 32);
    const old = await processes.start({
      key: `${BACKEND_PREFIX}team`,
      command: scratch.path('rclone'),
      args: [`--addr=127.0.0.1:${port}`],
      env: { RCLONE_USER: 'front', RCLONE_PASS: password },
      fingerprint,
      notes: { port, password },
    });
    old.release();
    const server = start();
    const kept = await served(server);
    assert.deepEqual([pidOf(kept), kept.port, kept.socketPath], [old.pid, port, undefined]);
    process.kill(old.pid, 'SIGKILL');
    const next = await served(server, kept);
    assert.equal(next.port, undefined);
    assert.equal(dirname(next.socketPath ?? ''), paths.sockets);
  });
});
