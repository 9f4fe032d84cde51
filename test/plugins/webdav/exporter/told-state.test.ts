/** What the proxy of WebDAV is told of users of the machine: a real socket, and what has come over it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { ToldState } from '../../../../plugins/webdav/exporter/told-state.ts';
import type { ToldStateOptions } from '../../../../plugins/webdav/exporter/told-state.ts';
import type { ProxyState } from '../../../../plugins/webdav/proxy/state.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

it('the proxy of WebDAV is told the group of the machine, and its members once they are known', async (t) => {
  const scratch = await createScratch('told-state');
  const paths = webdavPaths(scratch.path('state'));
  await mkdir(paths.own, { recursive: true });
  const states: ProxyState[] = [];
  const proxy = createServer((request, response) => {
    void request.toArray().then((pieces) => {
      states.push(JSON.parse(Buffer.concat(pieces as Buffer[]).toString()) as ProxyState);
      response.end('{}');
    });
  });
  await once(proxy.listen(paths.control), 'listening');
  t.after(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await scratch.close();
  });
  let members: readonly string[] | undefined;
  const told = new ToldState({
    clock: createClock(),
    log: collectLog().log,
    paths,
    config: () => ({
      cache: { min_free_space: '0' },
      web: { hostnames: [], trusted_proxies: [] },
      webdav: { enabled: true, users: [], system_group: 'people' },
      shares: [],
    }),
    shares: () => new Map(),
    certificate: () => undefined,
    spool: () => scratch.path('spool'),
    mark: 'm',
    own: { name: 'own', password: 'p' },
    systemUsers: () => members,
  } as unknown as ToldStateOptions);
  await told.tell();
  members = ['nora'];
  await told.tell();
  assert.deepEqual(
    states.map(({ systemGroup, systemUsers }) => [systemGroup, systemUsers]),
    [
      ['people', undefined],
      ['people', ['nora']],
    ],
  );
});
