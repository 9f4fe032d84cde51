/** Who is here over WebDAV, by the proxy in one process with a fake backend. */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { OWN_HEADER } from '../../../../plugins/webdav/proxy/state.ts';
import { basic, FIRST_BYTES, ProxyFixture } from '../../../support/webdav/fake-backend.ts';
import { until } from '../../../support/platform/wait.ts';

const SIZE = 100_000;
const SOON = { timeoutMs: 5_000 };

describe('sessions over WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => {
    fixture = await ProxyFixture.open();
    await fixture.tell({
      users: ['alice', 'bob'].map((name) => ({ name, password: 'wonder:land' })),
      shares: [fixture.share('team'), fixture.share('open')],
      mark: 'secret',
    });
    for (const share of ['team', 'open']) fixture.backend.files.set(`/${share}/a`, Buffer.alloc(SIZE));
  });
  afterEach(() => fixture.close());

  const list = () => fixture.proxy.visitors.sessions.list();
  const get = (user: string, path: string, headers = {}) =>
    fixture.ask('GET', path, { headers: { authorization: basic(user, 'wonder:land'), ...headers } });

  it('are each user in each share from each address, with what was sent', async () => {
    const begun = Date.now();
    for (const path of ['/team/a', '/team/a', '/open/a'])
      assert.equal((await get('alice', path)).status, 200);
    await get('bob', '/team/a');
    await get('bob', '/gone/a');
    await get('eve', '/team/a');
    const found = list();
    assert.deepEqual(found.map(({ user, share, address }) => `${user} ${share} ${address}`).sort(), [
      'alice open 127.0.0.1',
      'alice team 127.0.0.1',
      'bob team 127.0.0.1',
    ]);
    assert.equal(new Set(found.map(({ id }) => id)).size, 3);
    const team = found.find(({ user, share }) => user === 'alice' && share === 'team');
    assert.ok(team && team.since >= begun && team.lastAt >= team.since);
    assert.ok(team.toClient > 2 * SIZE && team.toClient < 2 * SIZE + 5_000, String(team.toClient));
    assert.ok(team.fromClient > 100 && team.fromClient < 5_000, String(team.fromClient));
  });

  it('share a connection, and bytes count for whoever asked for them', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const through = (user: string, path: string) =>
      new Promise<void>((resolve, reject) => {
        const headers = { authorization: basic(user, 'wonder:land') };
        httpRequest({ host: '127.0.0.1', port: fixture.port, path, agent, headers }, (response) =>
          response.resume().once('end', resolve),
        )
          .once('error', reject)
          .end();
      });
    for (const user of ['alice', 'bob', 'alice']) await through(user, '/team/a');
    const sent = () =>
      Object.fromEntries(list().map(({ user, toClient }) => [user, Math.round(toClient / SIZE)]));
    await until('all are counted', () => sent()['alice'] === 2, SOON);
    assert.deepEqual(sent(), { alice: 2, bob: 1 });
    // The connection is alice's by now.
    assert.equal(
      fixture.proxy.visitors.sessions.end(list().find(({ user }) => user === 'bob')?.id ?? ''),
      true,
    );
    assert.equal(await fixture.clients(), 1);
    assert.equal(
      fixture.proxy.visitors.sessions.end(list().find(({ user }) => user === 'alice')?.id ?? ''),
      true,
    );
    await until('it is closed', async () => (await fixture.clients()) === 0, SOON);
    assert.deepEqual(list(), []);
  });

  it('are not what the daemon asks, which nobody else can say of himself', async () => {
    await get('alice', '/team/a', { [OWN_HEADER]: 'secret' });
    assert.deepEqual(list(), []);
    await get('alice', '/team/a', { [OWN_HEADER]: 'guess' });
    assert.equal(list().length, 1);
  });

  it('that end break off what is under way, leave nothing of half an upload, and touch no other', async () => {
    const sending = (user: string) => {
      const request = httpRequest({
        host: '127.0.0.1',
        port: fixture.port,
        method: 'PUT',
        path: `/team/new-${user}`,
        agent: false,
        headers: { authorization: basic(user, 'wonder:land') },
      });
      const over = new Promise<string>((resolve) => {
        request.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
        request.once('response', (response) => resolve(String(response.resume().statusCode)));
      });
      request.write('half'.padEnd(FIRST_BYTES));
      return { request, over };
    };
    const [alice, bob] = [sending('alice'), sending('bob')];
    await until('both have begun', () => fixture.backend.count('PUT') === 2, SOON);
    const own = list().find(({ user }) => user === 'alice');
    assert.equal(fixture.proxy.visitors.sessions.end('nobody'), false);
    assert.equal(fixture.proxy.visitors.sessions.end(own?.id ?? ''), true);
    assert.match(await alice.over, /ECONNRESET|EPIPE/);
    assert.equal(fixture.proxy.visitors.sessions.end(own?.id ?? ''), false);
    bob.request.end();
    assert.equal(await bob.over, '201');
    await until('the half is gone', () => !fixture.backend.files.has('/team/new-alice'), SOON);
    assert.deepEqual(
      list().map(({ user }) => user),
      ['bob'],
    );
    // Whoever comes again is another session.
    await get('alice', '/team/a');
    assert.notEqual(list().find(({ user }) => user === 'alice')?.id, own?.id);
  });
});
