/** Who may do what in which share, by the proxy in one process with a fake backend. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { EventEmitter } from 'node:events';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Authenticator } from '../../../../plugins/webdav/proxy/authenticator.ts';
import { basic, FIRST_BYTES, ProxyFixture } from '../../../support/webdav/fake-backend.ts';
import { until } from '../../../support/platform/wait.ts';

const USERS = ['alice', 'bob', 'Bob', 'carol'].map((name) => ({
  name,
  password: 'wonder:land',
}));
const ACCESS = {
  team: { write: ['alice', 'bob'], read: ['carol'] },
  boss: { write: ['alice'], read: [] },
};
/** Whether it ends well or not. */
const closed = (stream: EventEmitter) => new Promise<void>((resolve) => void stream.once('close', resolve));
const SOON = { timeoutMs: 5_000 };
const HALF = 'half'.padEnd(FIRST_BYTES);
const WRITING = ['PUT', 'DELETE', 'MKCOL', 'COPY', 'MOVE', 'PROPPATCH', 'LOCK', 'UNLOCK'];

describe('access to shares over WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => {
    fixture = await ProxyFixture.open();
    await fixture.tell({
      users: USERS,
      shares: [fixture.share('team'), fixture.share('boss'), fixture.share('open')],
      access: ACCESS,
    });
    for (const share of ['team', 'boss', 'open'])
      fixture.backend.files.set(`/${share}/a`, Buffer.from(share));
  });
  afterEach(() => fixture.close());

  const as = (user: string, method: string, path: string, headers: Record<string, string> = {}) =>
    fixture.ask(method, path, {
      headers: { ...headers, authorization: basic(user, 'wonder:land') },
    });
  const status = async (...args: Parameters<typeof as>) => (await as(...args)).status;
  const request = (user: string, method: string, path: string, port = fixture.port): ClientRequest =>
    httpRequest({
      port,
      host: '127.0.0.1',
      method,
      path,
      agent: false,
      headers: { authorization: basic(user, 'wonder:land') },
    }).on('error', () => undefined);
  const upload = async (user: string, path: string): Promise<ClientRequest> => {
    const sending = request(user, 'PUT', path);
    const count = fixture.backend.count('PUT');
    sending.write(HALF);
    await until('it has begun', () => fixture.backend.count('PUT') > count, SOON);
    return sending;
  };

  it('hides what a user may not enter, as what is not there', async () => {
    assert.equal((await as('alice', 'GET', '/boss/a')).text, 'boss');
    const gone = await as('bob', 'GET', '/gone/a');
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PROPFIND', ...WRITING]) {
      const hidden = await as('bob', method, '/boss/a', {
        depth: '0',
        destination: '/boss/b',
      });
      assert.equal(hidden.status, 404, method);
    }
    assert.equal((await as('bob', 'GET', '/boss/a')).text, gone.text);
    const listed = async (user: string) =>
      [...(await as(user, 'PROPFIND', '/', { depth: '1' })).text.matchAll(/<D:href>\/(\w+)\//g)].map(
        ([, share]) => share,
      );
    assert.deepEqual(await listed('alice'), ['boss', 'open', 'team']);
    assert.deepEqual(await listed('carol'), ['open', 'team']);
    assert.doesNotMatch((await as('carol', 'GET', '/')).text, /boss/);
    // Another spelling is another user here.
    assert.deepEqual(
      [await status('Bob', 'GET', '/team/a'), await status('bob', 'GET', '/team/a')],
      [404, 200],
    );
  });

  it('knows a user whose name stands decomposed in the document', async () => {
    const parted = 'rene\u0301';
    await fixture.tell({
      users: [{ name: parted, password: 'wonder:land' }],
      access: { team: { write: ['ren\u00e9'], read: [] }, boss: { write: [], read: [] } },
    });
    for (const user of [parted, 'ren\u00e9'])
      assert.deepEqual(
        [
          await status(user, 'GET', '/open/a'),
          await status(user, 'GET', '/team/a'),
          await status(user, 'GET', '/boss/a'),
        ],
        [200, 200, 404],
      );
  });

  it('lets no way of writing a path lead round that', async () => {
    for (const path of [
      '/boss/a',
      '//boss/a',
      '/%62oss/a',
      '/open/../boss/a',
      '/open/%2e%2e/boss/a',
      '/open%2f..%2fboss/a',
      '/BOSS/a',
      '/boss//a',
      '/./boss/a',
      '/boss/a?x=/open/',
      '/boss;x/a',
      '/boss%00/a',
      'http://127.0.0.1/boss/a',
      'http://open@127.0.0.1/boss/a',
    ]) {
      const { status: code, text } = await as('carol', 'GET', path);
      assert.ok(code === 404 || code === 400, `${path} ${code}`);
      assert.doesNotMatch(text, /^boss/, path);
    }
    assert.equal(
      fixture.backend.seen.some(({ path }) => path.includes('boss')),
      false,
    );
  });

  it('writes in neither share for who may write in one alone', async () => {
    const { host } = new URL(`http://127.0.0.1:${fixture.port}`);
    for (const method of ['COPY', 'MOVE'])
      for (const [from, to] of [
        ['/open/a', '/boss/b'],
        ['/open/a', '/team/b'],
        ['/boss/a', '/open/b'],
        ['/team/a', '/open/b'],
        ['/open/a', '/open/../boss/b'],
        ['/open/a', '/%62oss/b'],
      ] as const) {
        const code = await status('carol', method, from, {
          destination: `http://${host}${to}`,
          overwrite: 'T',
        });
        assert.ok([400, 403, 404, 502].includes(code), `${method} ${from} ${to} ${code}`);
      }
    assert.deepEqual([...fixture.backend.files.keys()].sort(), ['/boss/a', '/open/a', '/team/a']);
  });

  it('refuses every change to who may only read', async () => {
    assert.equal((await as('carol', 'GET', '/team/a')).text, 'team');
    for (const method of WRITING)
      assert.equal(
        await status('carol', method, '/team/a', {
          destination: '/team/b',
          'lock-token': '<x>',
        }),
        403,
        method,
      );
    assert.doesNotMatch((await as('carol', 'OPTIONS', '/team/')).headers.allow?.toString() ?? '', /PUT/);
    assert.match((await as('bob', 'OPTIONS', '/team/')).headers.allow?.toString() ?? '', /PUT/);
    assert.equal(
      fixture.backend.seen.some(({ method }) => WRITING.includes(method)),
      false,
    );
  });

  it('lets nobody in by a name that no user has, nor without one where users are named', async () => {
    await fixture.tell({ isOpen: true, users: [] });
    assert.equal((await fixture.ask('GET', '/open/a', { headers: { authorization: '' } })).status, 200);
    for (const authorization of ['', basic('alice', 'wonder:land')])
      assert.equal((await fixture.ask('GET', '/team/a', { headers: { authorization } })).status, 404);
  });

  it('says nothing of a share that is away for a moment', async () => {
    await fixture.tell({
      shares: [fixture.share('open')],
      returning: ['boss', 'team'],
    });
    assert.doesNotMatch((await as('carol', 'GET', '/')).text, /boss/);
    assert.equal(await status('carol', 'GET', '/boss/a'), 404);
  });

  it('ends an upload of who may not write any more, and takes it back; others go on', async () => {
    const [lost, kept] = [await upload('bob', '/team/lost'), await upload('alice', '/team/kept')];
    const ended = closed(lost);
    await fixture.tell({
      access: { ...ACCESS, team: { write: ['alice'], read: ['bob', 'carol'] } },
    });
    await ended;
    await until('it is taken back', () => !fixture.backend.files.has('/team/lost'), SOON);
    kept.end('whole');
    const [response] = (await once(kept, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 201);
    assert.equal(fixture.backend.files.get('/team/kept')?.toString(), `${HALF}whole`);
  });

  it('begins none for who may not write any more when little of it had come', async () => {
    const sending = request('bob', 'PUT', '/team/little');
    const ended = closed(sending);
    sending.write('little');
    const isUnderWay = () => fixture.proxy.visitors.sessions.list().some(({ user }) => user === 'bob');
    await until('it is under way', isUnderWay, SOON);
    await fixture.tell({ access: { ...ACCESS, team: { write: ['alice'], read: ['bob', 'carol'] } } });
    await ended;
    assert.equal(fixture.backend.count('PUT'), 0);
    assert.equal(fixture.backend.files.has('/team/little'), false);
  });

  it('begins none for who may not write any more by the time it is noted, and leaves no note', async () => {
    const { journal, visitors } = fixture.proxy;
    const begin = journal.begin.bind(journal);
    let noted = 0;
    journal.begin = async (...args) => {
      const upload = await begin(...args);
      noted += 1;
      visitors.admitOnly({ ...fixture.state, access: { team: { write: [], read: [] } } });
      return upload;
    };
    for (const body of ['little', HALF]) {
      visitors.admitOnly(fixture.state);
      const sending = request('bob', 'PUT', '/team/late');
      sending.end(body);
      await closed(sending);
    }
    assert.equal(noted, 2);
    await until(
      'no note is left',
      () => readdirSync(join(fixture.folder, 'proxy/journal')).length === 0,
      SOON,
    );
    assert.equal(fixture.backend.count('PUT'), 0);
  });

  it('overwrites nothing for who may not write any more when all had arrived, and keeps nothing of it', async () => {
    const { spool } = fixture.state;
    const bodies = () => readdirSync(spool).length;
    const server = fixture.proxy
      .createServer()
      .prependListener('request', (coming: IncomingMessage) =>
        coming.once('end', () =>
          fixture.proxy.visitors.admitOnly({ ...fixture.state, access: { team: { write: [], read: [] } } }),
        ),
      );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const sending = request('bob', 'PUT', '/team/a', (server.address() as AddressInfo).port);
    // More than what goes through the memory.
    sending.write(Buffer.alloc(400_000));
    await until('it is on the disk', () => bodies() === 1, SOON);
    sending.end();
    await closed(sending);
    server.close();
    await until('the body is removed', () => bodies() === 0, SOON);
    assert.equal(fixture.backend.files.get('/team/a')?.toString(), 'team');
    assert.equal(fixture.backend.count('PUT'), 0);
  });

  it('ends a download of who has lost the share or the account', async () => {
    fixture.backend.before = ({ method }, response) => {
      if (method === 'GET') response.writeHead(200, { 'content-length': 100 }).write('half');
      return method === 'GET';
    };
    const reading = async (user: string) => {
      const [response] = (await once(request(user, 'GET', '/team/a').end(), 'response')) as [IncomingMessage];
      response.on('error', () => undefined).resume();
      return { end: closed(response), isOver: () => response.destroyed };
    };
    const [bob, carol, alice] = [await reading('bob'), await reading('carol'), await reading('alice')];
    await fixture.tell({
      users: USERS.filter(({ name }) => name !== 'carol'),
      access: { ...ACCESS, team: { write: ['alice'], read: ['carol'] } },
    });
    await Promise.all([bob.end, carol.end]);
    assert.equal(alice.isOver(), false);
  });

  it('carries out nothing for who lost the share while it was away', async () => {
    await fixture.tell({
      shares: [fixture.share('open')],
      returning: ['team'],
    });
    const answered = status('bob', 'DELETE', '/team/a').catch(() => 0);
    await until('it waits', async () => (await fixture.clients()) > 0, SOON);
    await fixture.tell({
      access: { ...ACCESS, team: { write: ['alice'], read: ['bob'] } },
    });
    assert.equal(await answered, 0);
    await fixture.tell({
      shares: [fixture.share('open'), fixture.share('team')],
      returning: [],
    });
    assert.equal((await as('alice', 'GET', '/team/a')).text, 'team');
    assert.equal(fixture.backend.count('DELETE'), 0);
  });

  it('gives up the locks of who may not write any more, and no others', async () => {
    fixture.backend.before = ({ method, headers }, response) => {
      if (method !== 'LOCK') return false;
      response
        .writeHead(200, {
          'lock-token': `<urn:uuid:${headers['x-oc-mtime'] as string}>`,
        })
        .end();
      return true;
    };
    for (const [user, token] of [
      ['alice', '1'],
      ['bob', '2'],
      ['bob', '3'],
      ['bob', '4'],
    ] as const)
      assert.equal(await status(user, 'LOCK', '/team/a', { 'x-oc-mtime': token }), 200);
    await status('bob', 'LOCK', '/open/a', { 'x-oc-mtime': '5' });
    fixture.backend.before = ({ method }, response) => {
      if (method === 'UNLOCK') response.writeHead(204).end();
      return method === 'UNLOCK';
    };
    assert.equal(
      await status('bob', 'UNLOCK', '/team/a', {
        'lock-token': '<urn:uuid:3>',
      }),
      204,
    );
    const given = () =>
      fixture.backend.seen
        .filter(({ method }) => method === 'UNLOCK')
        .map(({ headers }) => headers['lock-token']);
    await fixture.tell({
      access: { ...ACCESS, team: { write: ['alice'], read: ['bob'] } },
    });
    assert.deepEqual(given(), ['<urn:uuid:3>', '<urn:uuid:2>', '<urn:uuid:4>']);
  });
});

describe('refused sign-ins over WebDAV', () => {
  it('are counted by address and name, but for the own ones and those without a password', async () => {
    const authenticator = new Authenticator();
    authenticator.admitOnly({
      users: [{ name: 'alice', password: 'pw' }],
      isOpen: false,
      hostnames: [],
      trustedProxies: ['192.0.2.9'],
    } as never);
    const admit = (authorization?: string, isOwn = false) =>
      authenticator.admit(
        {
          socket: { remoteAddress: '192.0.2.9' },
          headers: { 'x-forwarded-for': '192.0.2.7', ...(authorization && { authorization }) },
        } as never,
        new AbortController().signal,
        isOwn,
      );
    await admit();
    await admit('Bearer token');
    await admit(basic('alice', 'pw'));
    await admit(basic('alice', 'wrong-0'), true);
    assert.equal(authenticator.refused.take(), undefined);
    await admit(basic('alice', 'wrong-1'));
    await admit(basic('guest', 'wrong-2'));
    const told = authenticator.refused.take();
    assert.deepEqual(
      told?.refused.map(({ address, user, isNobody, count }) => [address, user, isNobody, count]),
      [
        ['192.0.2.7', 'alice', false, 1],
        ['192.0.2.7', 'guest', true, 1],
      ],
    );
    assert.doesNotMatch(JSON.stringify(told), /wrong/);
  });
});

describe('a password that everybody on the way could read', () => {
  const admitted = async (address: string, state: object, isOwn = false) => {
    const authenticator = new Authenticator();
    authenticator.admitOnly({
      users: [{ name: 'alice', password: 'pw' }],
      isOpen: false,
      hostnames: [],
      trustedProxies: ['192.0.2.9'],
      ...state,
    } as never);
    const headers = { authorization: basic('alice', 'pw'), host: '192.0.2.1' };
    const request = { socket: { remoteAddress: address }, headers } as never;
    const admission = await authenticator.admit(request, new AbortController().signal, isOwn);
    return 'refusal' in admission ? admission.refusal.status : admission.user;
  };

  it('is taken over plain HTTP from this machine, a trusted proxy and the daemon alone', async () => {
    const refuses = { refusesInClear: true };
    assert.equal(await admitted('192.0.2.7', refuses), 403);
    for (const address of ['127.0.0.1', '192.0.2.9']) assert.equal(await admitted(address, refuses), 'alice');
    assert.equal(await admitted('192.0.2.7', refuses, true), 'alice');
    // Allowed by name, and of a former daemon, which does not say.
    for (const state of [{ refusesInClear: false }, {}])
      assert.equal(await admitted('192.0.2.7', state), 'alice');
    assert.equal(await admitted('192.0.2.7', { ...refuses, isOpen: true }), undefined);
  });
});
