/** A share that takes no more writes, since it is about to be mounted anew: a real proxy, and its exporter. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { it } from 'node:test';
import type { LiveShare, Mount, ProcessSpec } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { WebdavExporter } from '../../../../plugins/webdav/exporter/exporter.ts';
import type { WebdavTools } from '../../../../plugins/webdav/exporter/exporter.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../../support/platform/wait.ts';
import { basic, FakeBackend } from '../../../support/webdav/fake-backend.ts';
import { sharesOf } from '../../../support/shares/fake-shares.ts';

const NAMES = ['photos', 'music'];
/** The program and its fixed arguments: what follows are folders, which nobody opens for it here. */
const ARGUMENTS = 5;

it('a share that is about to be mounted anew can be read over WebDAV, which is announced', async (t) => {
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
  const live = shares.map((share) => {
    const plan = { mountPoint: `/mnt/${share.name}` };
    const mount = { pid: process.pid, plan, serve: () => Promise.resolve(true) };
    return { spec: { share }, mount, health: 'healthy' } as unknown as LiveShare & { readonly mount: Mount };
  });
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
    shares: sharesOf(() => live),
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
  const ask = (method: string, body?: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${settings.port}/photos/a`, {
      method,
      headers: { authorization: basic('alice', 'p') },
      ...(body !== undefined && { body }),
    });
  backends[0]?.files.set('/photos/a', Buffer.from('text'));
  await exporter.quiesce('photos');
  assert.deepEqual([exporter.isServing, exporter.offers().length], [true, 1]);
  await look();
  assert.deepEqual([exporter.isServing, exporter.offers().length], [true, 1]);
  assert.equal(await (await ask('GET')).text(), 'text');
  const written = ask('PUT', 'other');
  assert.equal(await Promise.race([written, sleep(300)]), undefined, 'it waits');
  assert.equal(backends[0]?.files.get('/photos/a')?.toString(), 'text');
  const [photos] = live;
  if (photos) await exporter.add(photos.spec, photos.mount);
  assert.equal((await written).status, 204);
  await exporter.remove('photos');
  assert.equal(exporter.isServing, false, 'it should be there again');
});
