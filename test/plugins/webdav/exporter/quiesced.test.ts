/** A share that takes no more writes, since it is about to be mounted anew: a real proxy, and its exporter. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { it } from 'node:test';
import type { ProcessSpec } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { WebdavExporter } from '../../../../plugins/webdav/exporter/exporter.ts';
import type { WebdavTools } from '../../../../plugins/webdav/exporter/exporter.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';
import { FakeBackend } from '../../../support/webdav/fake-backend.ts';

const NAMES = ['photos', 'music'];
/** The program and its fixed arguments: what follows are folders, which nobody opens for it here. */
const ARGUMENTS = 5;

it('WebDAV is served, and announced, while one of its shares is about to be mounted anew', async (t) => {
  const scratch = await createScratch('quiesced');
  const paths = webdavPaths(scratch.path('state'));
  for (const folder of [paths.own, paths.sockets]) await mkdir(folder, { recursive: true });
  const backends = NAMES.map(() => new FakeBackend());
  for (const [index, backend] of backends.entries()) {
    backend.files.set(`/${NAMES[index]}/`, Buffer.alloc(0));
    await once(backend.server.listen(paths.socket(NAMES[index] ?? '')), 'listening');
  }
  let endProxy = async (): Promise<void> => undefined;
  const start = (spec: ProcessSpec) => {
    const child = spawn(spec.command, spec.args.slice(0, ARGUMENTS), { stdio: 'ignore' });
    const exited = once(child, 'exit');
    endProxy = async () => void (child.kill('SIGKILL') && (await exited));
    return Promise.resolve({
      pid: child.pid,
      exited: exited.then(() => ({ code: null, signal: null, lastLines: [] })),
      isAlive: () => child.exitCode === null && child.signalCode === null,
      tail: () => Promise.resolve([]),
      release: () => undefined,
    });
  };
  const settings = {
    enabled: true,
    listen: '127.0.0.1',
    port: await freePort(),
    users: [{ name: 'alice', password: 'p' }],
    plain_http: false,
  };
  const shares = NAMES.map((name) => ({ name, protocols: ['webdav'], read_only: false }));
  const exporter = new WebdavExporter({
    clock: createClock(),
    log: collectLog().log,
    processes: {
      start,
      adopt: () => Promise.resolve(undefined),
      run: () => Promise.reject(new Error('nothing is run here')),
      recorded: () => Promise.resolve([]),
    },
    mountTable: { find: () => Promise.resolve({}) },
    paths: { stateDir: scratch.path('state') },
    shares: {
      list: () =>
        shares.map((share) => {
          const plan = { mountPoint: `/mnt/${share.name}` };
          const mount = { pid: process.pid, plan, serve: () => Promise.resolve(true) };
          return { spec: { share }, mount, health: 'healthy' };
        }),
    },
    exporters: {},
    secrets: { resolve: String },
    certificates: {},
    settings,
    config: () => ({
      cache: { dir: scratch.path('cache'), min_free_space: '0' },
      web: { hostnames: [], trusted_proxies: [] },
      webdav: settings,
      shares,
    }),
    rclone: () => 'rclone',
    onRefused: () => undefined,
  } as unknown as WebdavTools);
  t.after(async () => {
    await exporter.close(true);
    await endProxy();
    for (const { server } of backends) {
      server.closeAllConnections();
      server.close();
    }
    await scratch.close();
  });
  await exporter.open();
  const look = (): Promise<void> => exporter.look(new AbortController().signal);
  await until('both are served', async () => (await look(), exporter.isServing), { timeoutMs: 20_000 });
  await exporter.quiesce('photos');
  await look();
  assert.deepEqual([exporter.isServing, exporter.offers().length], [true, 1]);
  await exporter.remove('photos');
  assert.equal(exporter.isServing, false, 'it should be there again');
});
