/** What the daemon finds out about the proxy of WebDAV by asking as a client. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Config, Secrets } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { ClientView } from '../../../../plugins/webdav/exporter/client-view.ts';
import { OWN_HEADER } from '../../../../plugins/webdav/proxy/state.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const USERS = ['anna', 'ben'].map((name) => ({ name, password: 'p' }));
const SHARES = [{ name: 'open' }, { name: 'bens', users: ['ben'] }, { name: 'carls', users: ['carl'] }];

describe('what a client sees of the proxy of WebDAV', () => {
  let proxy: Server;
  let asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  let away: string | undefined;
  let view: ClientView;
  let deaf: number;
  const ask = (): Promise<void> => view.ask(new AbortController().signal);

  beforeEach(async () => {
    [asked, away, deaf] = [[], undefined, 0];
    proxy = createServer(({ url: path = '', headers }, response) => {
      asked.push({ path, headers });
      if (away === 'all') response.socket?.end('this is no answer\r\n\r\n');
      else response.writeHead(path === away ? 404 : 207).end();
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const { port } = proxy.address() as AddressInfo;
    view = new ClientView({
      clock: createClock(),
      log: collectLog().log,
      address: { host: '127.0.0.1', port },
      secrets: { resolve: String } as unknown as Secrets,
      config: () => ({ shares: SHARES, webdav: { users: USERS } }) as unknown as Config,
      shares: () => SHARES.map(({ name }) => name),
      onDeaf: () => (deaf += 1),
    });
  });
  afterEach(() => proxy.close());

  it('is asked for as somebody who may, with the mark of the daemon', async () => {
    await ask();
    const users = asked.map(({ path, headers: { authorization = '' } }) => [
      path,
      Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(),
    ]);
    // Nobody here may enter what is carl's alone.
    assert.deepEqual(Object.fromEntries(users), { '/': 'anna:p', '/open/': 'anna:p', '/bens/': 'ben:p' });
    assert.deepEqual(new Set(asked.map(({ headers }) => headers[OWN_HEADER])), new Set([view.mark]));
    assert.deepEqual([view.isAnswering, view.lost], [true, []]);
  });

  it('is a share less while that one is not there, and nothing when the list is refused', async () => {
    away = '/bens/';
    await ask();
    assert.deepEqual([view.isAnswering, view.lost], [true, ['bens']]);
    away = '/';
    await ask();
    assert.deepEqual([view.isAnswering, view.lost, deaf], [false, [], 0]);
  });

  it('is nothing from the first silence on, and a proxy that hangs at the fifth', async () => {
    await ask();
    away = 'all';
    for (const ends of [0, 0, 0, 0, 1, 1]) {
      await ask();
      assert.deepEqual([view.isAnswering, deaf], [false, ends]);
    }
  });
});
