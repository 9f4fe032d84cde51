/** A document gives a user another password while a share's mount hangs: a real proxy, and its exporter. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClock } from '../../../../core/platform/clock.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { report, tell } from '../../../../plugins/webdav/exporter/proxy-process.ts';
import { WebdavExporter } from '../../../../plugins/webdav/exporter/exporter.ts';
import type { WebdavTools } from '../../../../plugins/webdav/exporter/exporter.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';
import { basic } from '../../../support/webdav/fake-backend.ts';
import { sharesOf } from '../../../support/shares/fake-shares.ts';
import type { LiveShare } from 'mountkeeper';

const MAIN = fileURLToPath(new URL('../../../../plugins/webdav/proxy/main.js', import.meta.url));
const PATIENCE = { timeoutMs: 20_000 };

describe('another password of a WebDAV user', () => {
  it('counts before the shares are looked at, one of which hangs, on a connection that was let in, too', async () => {
    const scratch = await createScratch('password');
    const paths = webdavPaths(scratch.path('state'));
    for (const folder of [paths.own, paths.sockets]) await mkdir(folder, { recursive: true });
    const port = await freePort();
    const child = spawn(process.execPath, [MAIN, paths.root, '127.0.0.1', String(port), 'http'], {
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let takeUp = (_isInside: boolean): void => undefined;
    let close = async (): Promise<void> => undefined;
    try {
      const clock = createClock();
      await until('the proxy is up', () => report(paths, clock.deadline(2_000)), PATIENCE);
      const backend = { instance: 'first', port: 1, takesProperties: true };
      const photos = { name: 'photos', path: '/mnt/photos', readOnly: false, backend };
      const userOf = (password: string) => ({ name: 'alice', password });
      const state = {
        hostnames: [],
        trustedProxies: [],
        minFreeBytes: 0,
        access: {},
        returning: [],
        mark: 'm',
      };
      await tell(
        paths,
        {
          ...state,
          users: [userOf('former')],
          isOpen: false,
          spool: scratch.path('spool'),
          shares: [photos],
        },
        clock.deadline(5_000),
      );
      const sockets = new Set<unknown>();
      const status = async (password: string): Promise<number> => {
        const headers = { authorization: basic('alice', password) };
        const request = httpRequest({ host: '127.0.0.1', port, path: '/', agent, headers }).end();
        const [response] = (await once(request, 'response')) as [IncomingMessage];
        sockets.add(response.socket);
        response.resume();
        await once(response, 'end');
        return response.statusCode ?? 0;
      };
      assert.equal(await status('former'), 200);

      const asked = new Promise<boolean>((resolve) => (takeUp = resolve));
      const mount = { pid: child.pid, plan: { mountPoint: '/mnt/photos' }, serve: () => asked };
      const share = { name: 'photos', protocols: ['webdav'], read_only: false };
      const settings = {
        enabled: true,
        listen: '127.0.0.1',
        port,
        users: [userOf('another')],
        plain_http: false,
      };
      let running = settings;
      const exporter = new WebdavExporter({
        clock,
        log: collectLog().log,
        processes: {
          adopt: () => Promise.resolve({ fingerprint: 'another', stop: () => Promise.resolve() }),
          run: () => Promise.reject(new Error('nothing is run here')),
          recorded: () => Promise.resolve([]),
        },
        mountTable: { find: () => Promise.resolve({}) },
        paths: { stateDir: scratch.path('state') },
        shares: sharesOf(() => [{ spec: { share }, mount, health: 'healthy' } as unknown as LiveShare]),
        exporters: {},
        secrets: { resolve: String },
        certificates: {},
        settings,
        config: () => ({
          cache: { dir: scratch.path('cache'), min_free_space: '0' },
          web: { hostnames: [], trusted_proxies: [] },
          webdav: running,
          shares: [share],
        }),
        rclone: () => 'rclone',
      } as unknown as WebdavTools);
      let isOpen = false;
      const opening = exporter.open().then(() => (isOpen = true));
      close = async () => {
        takeUp(true);
        await opening;
        await exporter.close(true);
      };
      await until('the former password is refused', async () => (await status('former')) === 401, PATIENCE);
      assert.equal(await status('another'), 200);
      assert.deepEqual([isOpen, sockets.size], [false, 1]);
      // The share is there as before.
      const { shares } = await report(paths, clock.deadline(2_000));
      assert.deepEqual(shares, [photos]);

      // Documents that come while the exporter is busy with that share: in force once it says so, with no second look.
      running = { ...settings, users: [userOf('third')] };
      await exporter.enforce();
      assert.deepEqual([await status('another'), await status('third'), isOpen], [401, 200, false]);
      share.protocols = ['smb'];
      await exporter.enforce();
      assert.deepEqual((await report(paths, clock.deadline(2_000))).shares, []);
      share.protocols = ['webdav'];
      running = { ...settings, enabled: false, users: [] };
      await exporter.enforce();
      assert.deepEqual([await status('third'), await status('')], [401, 401]);
    } finally {
      await close();
      agent.destroy();
      child.kill('SIGKILL');
      await ended;
      await scratch.close();
    }
  });
});
