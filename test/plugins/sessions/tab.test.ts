/** The tab on the dashboard, over HTTP and without a browser. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createClock, definePlugin } from 'mountkeeper';
import type { AnsweredRequest, ClientSession, Exporter, Principal } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import dashboard from '../../../plugins/dashboard/index.ts';
import sessions from '../../../plugins/sessions/index.ts';

const ANNA: ClientSession = {
  id: '11.7',
  user: '<anna>',
  address: '192.0.2.5',
  shares: ['photos'],
  since: 1_000,
  lastAt: null,
  bytesToClient: 2_048,
  bytesFromClient: null,
};

describe('the tab of sessions', () => {
  it('shows them in both languages, and an operator ends one, with a line that says who', async (t) => {
    let connected: readonly ClientSession[] = [ANNA];
    const exporter = { add: async () => undefined, remove: async () => undefined };
    const smb: Exporter = {
      ...exporter,
      sessions: async () => connected,
      endSession: async (id) => {
        const isThere = connected.some((one) => one.id === id);
        connected = [];
        return isThere;
      },
    };
    const nfs: Exporter = {
      ...exporter,
      sessions: async () => {
        throw new Error('it <hangs>');
      },
    };
    const answered: AnsweredRequest[] = [];
    const house = definePlugin({
      name: 'house',
      version: '1.0.0',
      apiVersion: 1,
      description: 'A house.',
      register(ctx) {
        ctx.provide('exporter:smb', () => smb);
        ctx.provide('exporter:nfs', () => nfs);
        ctx.tap('afterRequest', (request) => void answered.push(request));
        ctx.hapi(
          {
            name: 'who',
            register: (server) => {
              server.ext('onRequest', (request, h) => {
                const role = request.headers['x-role'] as Principal['role'];
                Object.assign(request.auth, { credentials: { name: 'eve', kind: 'user', role } });
                return h.continue;
              });
            },
          },
          {},
        );
      },
    });
    const host = await createTestHost({ plugins: [dashboard, sessions, house], clock: createClock() });
    t.after(() => host.close());
    const page = (role: string, language = 'en') =>
      host.inject({ url: '/tabs/sessions', headers: { 'x-role': role, 'accept-language': language } });
    const end = async (role: string) => {
      const headers = { 'x-role': role, 'content-type': 'application/x-www-form-urlencoded' };
      const url = '/dashboard/do/sessions/end';
      return host.inject({ method: 'POST', url, headers, payload: 'id=smb%3A11.7' });
    };
    const { payload } = await page('operator');
    for (const one of [/&lt;anna>/, /192\.0\.2\.5/, /photos/, /2\.0 KiB/, /not known/])
      assert.match(payload, one);
    assert.match(payload, /Disconnect &lt;anna> at 192\.0\.2\.5\?/);
    assert.match(payload, /Who is connected over NFS is not known: it &lt;hangs>/);
    assert.match((await page('operator', 'zh-CN')).payload, /要断开 192\.0\.2\.5 上的 &lt;anna> 吗/);
    assert.equal((await page('viewer')).statusCode, 404);
    assert.ok([403, 404].includes((await end('viewer')).statusCode));
    assert.equal(connected.length, 1);
    assert.match((await end('operator')).payload, /The session has ended\./);
    assert.match((await page('operator')).payload, /Who is connected over NFS/);
    assert.doesNotMatch((await page('operator')).payload, /anna/);
    assert.match((await end('operator')).payload, /There is no such session any more\./);
    const told = answered.filter(({ path }) => path === '/dashboard/do/sessions/end').slice(-2);
    assert.deepEqual(
      told.map(({ about, isDone }) => [about['user'], about['address'], isDone]),
      [
        ['<anna>', '192.0.2.5', true],
        [undefined, undefined, false],
      ],
    );
  });
});
