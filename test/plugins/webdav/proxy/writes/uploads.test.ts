/** What becomes of an upload when its client, its backend or the proxy goes away in the middle of it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../../../plugins/webdav/proxy/proxy.ts';
import { until } from '../../../../support/platform/wait.ts';
import { basic, ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const LARGE = 400_000;

describe('an upload through the proxy of WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  const hasCome = (method: string, path: string): boolean =>
    fixture.backend.seen.some((one) => one.method === method && one.path === path);
  /**
   * Sends the head and a part of the body, then goes away once the backend was asked for it by this method.
   */
  const sendTorn = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<void> => {
    const piece = randomBytes(LARGE);
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      method: 'PUT',
      path,
      agent: false,
      headers: {
        authorization: basic('alice', 'wonder:land'),
        'content-length': String(piece.length * 2),
        ...headers,
      },
    });
    request.on('error', () => undefined);
    await new Promise<void>((resolve) => request.write(piece, () => resolve()));
    await until(`the backend has heard of ${path}`, () => hasCome(method, path), {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    request.destroy();
  };
  const left = async (): Promise<readonly string[]> => [
    ...(await readdir(join(fixture.folder, 'proxy/journal'))),
    ...(await readdir(fixture.state.spool).catch(() => [])),
  ];

  it('keeps a file with content as it was when the client goes away', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('good'));
    await sendTorn('PROPFIND', '/team/a');
    await until('nothing is left of it', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(fixture.backend.files.get('/team/a')?.toString(), 'good');
    assert.equal(fixture.backend.count('PUT'), 0);
  });

  it('takes a new file away when the client goes away, and empties one that was empty', async () => {
    fixture.backend.files.set('/team/empty', Buffer.alloc(0));
    for (const path of ['/team/new', '/team/empty']) await sendTorn('PUT', path, { if: '(<urn:token>)' });
    await until('both are mended', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(fixture.backend.files.has('/team/new'), false);
    assert.equal(fixture.backend.files.get('/team/empty')?.length, 0);
    assert.equal(fixture.backend.seen.find(({ method }) => method === 'DELETE')?.headers.if, '(<urn:token>)');
  });

  it('takes away nothing that others have put there meanwhile', async () => {
    fixture.backend.before = ({ method }) => {
      if (method === 'PROPFIND' && fixture.backend.files.has('/team/new'))
        fixture.backend.files.set('/team/new', Buffer.from('of others'));
      return false;
    };
    await sendTorn('PUT', '/team/new');
    await until('nothing is left of it', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(fixture.backend.files.get('/team/new')?.toString(), 'of others');
    assert.equal(fixture.backend.count('DELETE'), 0);
  });

  it('looks at the condition of its client once more when the body is there', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('good'));
    let looks = 0;
    fixture.backend.before = ({ method }) => {
      if (method === 'PROPFIND' && (looks += 1) === 2)
        fixture.backend.files.set('/team/a', Buffer.from('of others'));
      return false;
    };
    const { status } = await fixture.ask('PUT', '/team/a', {
      body: randomBytes(LARGE),
      headers: { 'if-match': '"e4"' },
    });
    assert.equal(status, 412);
    assert.equal(fixture.backend.files.get('/team/a')?.toString(), 'of others');
    assert.deepEqual(await left(), []);
  });

  it('mends what was begun under a lock that is gone since, at once or later', async () => {
    // The first answer is lost: what is left is for the clean-up.
    let lost = 1;
    fixture.backend.files.set('/team/empty', Buffer.alloc(0));
    fixture.backend.before = ({ method, headers, socket }, response) => {
      if (method !== 'DELETE' && (method !== 'PUT' || headers.expect !== undefined)) return false;
      if (method === 'DELETE' && lost-- > 0) return Boolean(socket.destroy());
      const isRefused = headers.if !== undefined;
      if (isRefused) response.writeHead(412).end();
      return isRefused;
    };
    for (const path of ['/team/new', '/team/empty']) await sendTorn('PUT', path, { if: '(<urn:token>)' });
    await until('both are mended', async () => (await left()).length === 0, { timeoutMs: 10_000 });
    assert.equal(fixture.backend.files.has('/team/new'), false);
    assert.equal(fixture.backend.files.get('/team/empty')?.length, 0);
  });

  it('takes back what it can no longer pass on whole when the share has to go', async () => {
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      method: 'PUT',
      path: '/team/slow',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), 'content-length': '1000000' },
    });
    request.on('error', () => undefined).write(randomBytes(LARGE));
    await until(
      'it has come to the backend',
      () => fixture.backend.files.get('/team/slow')?.length === LARGE,
      {
        timeoutMs: 20_000,
        everyMs: 5,
      },
    );
    await fixture.tell({ shares: [] });
    assert.equal(fixture.backend.files.has('/team/slow'), false);
    await until('no note is left', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    request.destroy();
  });

  for (const [what, sent] of [
    ['it', {}],
    ['it with the time that its client wants', { 'x-oc-mtime': '1600000000' }],
  ] as const)
    it(`looks once more for what was taken off with its share half sent, and finds ${what}`, async () => {
      const request = httpRequest({
        host: '127.0.0.1',
        port: fixture.port,
        method: 'PUT',
        path: '/team/covered',
        agent: false,
        headers: { authorization: basic('alice', 'wonder:land'), 'content-length': '1000000', ...sent },
      });
      request.on('error', () => undefined).write(randomBytes(LARGE));
      const isThere = (): boolean => fixture.backend.files.get('/team/covered')?.length === LARGE;
      await until('it has come to the backend', isThere, { timeoutMs: 20_000, everyMs: 5 });
      // As a mount that something else lies over.
      fixture.backend.before = ({ method }, response) => {
        if (method === 'PROPFIND') response.writeHead(404).end();
        return method === 'PROPFIND';
      };
      await fixture.tell({ shares: [] });
      fixture.backend.before = () => false;
      assert.equal((await left()).length, 1);
      await fixture.tell({ shares: [fixture.share('team')] });
      await until('it is taken back', async () => (await left()).length === 0, { timeoutMs: 20_000 });
      assert.equal(fixture.backend.files.has('/team/covered'), false);
      request.destroy();
    });

  it('makes nothing of a whole body whose client went away before it was read', async () => {
    let answerStat: () => void = () => undefined;
    fixture.backend.before = ({ method }, response) => {
      if (method !== 'PROPFIND') return false;
      answerStat = () => void response.writeHead(404).end();
      return true;
    };
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      method: 'PUT',
      path: '/team/short',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), 'content-length': '3' },
    });
    request.on('error', () => undefined).end('abc');
    await until('the backend is asked', () => fixture.backend.count('PROPFIND') === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    request.destroy();
    await until('the proxy has noticed', async () => (await fixture.clients()) === 0, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    answerStat();
    await fixture.tell({ shares: [] });
    assert.equal(fixture.backend.files.has('/team/short'), false);
    await until('no note is left', async () => (await left()).length === 0, { timeoutMs: 20_000 });
  });

  it("overwrites with small and large bodies, with the client's headers", async () => {
    for (const size of [0, 10, LARGE]) {
      fixture.backend.files.set('/team/a', Buffer.from('old'));
      const body = randomBytes(size);
      const { status } = await fixture.ask('PUT', '/team/a', {
        body,
        headers: { 'oc-mtime': '1600000000', if: '(<urn:x>)' },
      });
      assert.equal(status, 204);
      assert.ok(fixture.backend.files.get('/team/a')?.equals(body));
      const { headers } = fixture.backend.seen.findLast(({ method }) => method === 'PUT') ?? assert.fail();
      assert.deepEqual(
        [headers['x-oc-mtime'], headers.if, headers['content-length']],
        ['1600000000', '(<urn:x>)', String(size)],
      );
    }
    assert.deepEqual(await left(), []);
    const fresh = await fixture.ask('PUT', '/team/b', { body: randomBytes(LARGE) });
    assert.deepEqual([fresh.status, fixture.backend.files.get('/team/b')?.length], [201, LARGE]);
  });

  it('comes whole into its place without a length, whether it is received as a whole or streamed', async () => {
    const headers = { 'transfer-encoding': 'chunked' };
    for (const size of [0, 1, 131_072, 131_073, LARGE]) {
      const body = randomBytes(size);
      const path = `/team/of-${size}`;
      assert.equal((await fixture.ask('PUT', path, { body, headers })).status, 201);
      assert.ok(fixture.backend.files.get(path)?.equals(body), path);
      const { headers: sent } =
        fixture.backend.seen.findLast(({ method }) => method === 'PUT') ?? assert.fail();
      assert.equal(sent.expect, size > 131_072 ? '100-continue' : undefined);
    }
    assert.deepEqual(await left(), []);
  });

  it("hears the backend's refusal of a locked file, and leaves the file", async () => {
    fixture.backend.files.set('/team/a', Buffer.from('old'));
    fixture.backend.before = ({ method }, response) =>
      method === 'PUT' && Boolean(response.writeHead(423).end());
    for (const path of ['/team/a', '/team/new'])
      assert.equal((await fixture.ask('PUT', path, { body: randomBytes(LARGE) })).status, 423);
    assert.equal(fixture.backend.files.get('/team/a')?.toString(), 'old');
    assert.deepEqual([await left(), fixture.backend.count('DELETE')], [[], 0]);
  });

  it('refuses what the disk has no room for', async () => {
    await fixture.tell({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    assert.equal((await fixture.ask('PUT', '/team/a', { body: randomBytes(10) })).status, 507);
    assert.equal(fixture.backend.count('PUT'), 0);
  });

  it('writes a file again from the start when the backend dies in the middle of it', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('old'));
    let deaths = 0;
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT' || deaths > 0) return false;
      deaths += 1;
      fixture.backend.files.set('/team/a', Buffer.from('torn'));
      response.writeContinue();
      request.once('data', () => request.destroy());
      return true;
    };
    const body = randomBytes(LARGE);
    assert.equal((await fixture.ask('PUT', '/team/a', { body })).status, 204);
    assert.ok(fixture.backend.files.get('/team/a')?.equals(body));
    assert.equal(deaths, 1);
  });

  const base64 = (content: string): string => Buffer.from(content).toString('base64');

  it('brings to its end what a killed proxy had begun', async () => {
    const torn = { share: 'team', headers: { host: 'nas' } };
    const body = join(fixture.folder, 'kept.part');
    await writeFile(body, 'whole content');
    await fixture.proxy.journal.begin({ ...torn, kind: 'whole', parts: ['over'], body });
    await fixture.proxy.journal.begin({ ...torn, kind: 'new', parts: ['fresh'], first: base64('fresh') });
    await fixture.proxy.journal.begin({ ...torn, kind: 'new', parts: ['gone'] });
    // Half a file has the time that its client wants, and so may what others have put there.
    const dated = {
      kind: 'new',
      share: 'team',
      headers: { host: 'nas', 'x-oc-mtime': '1600000000' },
      first: base64('half'),
    } as const;
    for (const [name, content] of [
      ['half', 'hal'],
      ['of-others', 'whole'],
      ['unknown', 'hal'],
    ] as const) {
      const upload = await fixture.proxy.journal.begin({ ...dated, parts: [name] });
      if (name !== 'unknown') await fixture.proxy.journal.leave(upload, { passedBytes: 3 });
      fixture.backend.files.set(`/team/${name}`, Buffer.from(content));
      fixture.backend.times.set(`/team/${name}`, 1_600_000_000_000);
    }
    fixture.backend.files.set('/team/over', Buffer.from('who'));
    fixture.backend.files.set('/team/fresh', Buffer.from('fre'));
    const next = new WebdavProxy(join(fixture.folder, 'proxy'), () => undefined);
    await next.open();
    await next.take(fixture.state);
    await until('all is settled', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(fixture.backend.files.get('/team/over')?.toString(), 'whole content');
    assert.equal(fixture.backend.files.has('/team/fresh'), false);
    assert.equal(fixture.backend.files.has('/team/half'), false);
    assert.equal(fixture.backend.files.get('/team/of-others')?.toString(), 'whole');
    assert.ok(fixture.backend.files.has('/team/unknown'));
    await next.take({ ...fixture.state, shares: [] });
  });

  it('sends no file of the machine, which the killed proxy was made to put a link to', async () => {
    const secret = join(fixture.folder, 'secret');
    const body = join(fixture.folder, 'linked.part');
    await writeFile(secret, 'a secret of the machine');
    await symlink(secret, body);
    const torn = { share: 'team', headers: { host: 'nas' } };
    await fixture.proxy.journal.begin({ ...torn, kind: 'whole', parts: ['over'], body });
    fixture.backend.files.set('/team/over', Buffer.from('who'));
    const next = new WebdavProxy(join(fixture.folder, 'proxy'), () => undefined);
    await next.open();
    await next.take(fixture.state);
    await until('all is settled', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(fixture.backend.files.get('/team/over')?.toString(), 'who');
    assert.equal(await readFile(secret, 'utf8'), 'a secret of the machine');
    await next.take({ ...fixture.state, shares: [] });
  });
});
