/** What others put in the place of an upload while it runs, over SMB, say, stays when the upload breaks off. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cp, readdir } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { ClientRequest, OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../../../plugins/webdav/proxy/proxy.ts';
import { sleep, until } from '../../../../support/platform/wait.ts';
import { basic, ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const BODY = randomBytes(500_000);
const SENT = BODY.subarray(0, 200_000);
const OF_OTHERS = Buffer.from('of others');
const PATIENCE = { timeoutMs: 20_000, everyMs: 5 };

describe('what others put in the place of a WebDAV upload while it runs', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  const file = (): Buffer | undefined => fixture.backend.files.get('/team/a');
  const put = (content: Buffer): unknown => fixture.backend.files.set('/team/a', content);
  const settled = (folder = 'proxy'): Promise<unknown> =>
    until(
      'no note is left',
      async () => (await readdir(join(fixture.folder, folder, 'journal'))).length === 0,
      PATIENCE,
    );
  const begin = (length: OutgoingHttpHeaders = { 'content-length': String(BODY.length) }): ClientRequest => {
    const headers = { authorization: basic('alice', 'wonder:land'), ...length };
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      method: 'PUT',
      path: '/team/a',
      agent: false,
      headers,
    });
    request.on('error', () => undefined).flushHeaders();
    return request;
  };
  const beginHalf = async (): Promise<ClientRequest> => {
    const request = begin();
    request.write(SENT);
    await until('it has come to the backend', () => file()?.length === SENT.length, PATIENCE);
    return request;
  };

  for (const [what, before] of [
    ['a new file', undefined],
    ['an empty file', Buffer.alloc(0)],
    ['a file', Buffer.from('former')],
  ] as const)
    it(`stays when the backend breaks off what is to be ${what}`, async () => {
      if (before) put(before);
      fixture.backend.before = (request, response) => {
        if (request.method !== 'PUT') return false;
        if (request.headers.expect !== undefined) response.writeContinue();
        request.once('data', () => {
          put(OF_OTHERS);
          // What is put over a file would be repeated at once.
          if (before?.length === 6) response.writeHead(500).end();
          else request.destroy();
        });
        return true;
      };
      assert.equal((await fixture.ask('PUT', '/team/a', { body: BODY })).status, 502);
      await settled();
      assert.equal(file()?.toString('latin1'), 'of others');
      assert.deepEqual([fixture.backend.count('PUT'), fixture.backend.count('DELETE')], [1, 0]);
    });

  it('is not emptied where the file is as empty as it was, by a listing from before', async () => {
    put(Buffer.alloc(0));
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT') return false;
      response.writeHead(500).end();
      return true;
    };
    assert.equal((await fixture.ask('PUT', '/team/a', { body: BODY })).status, 502);
    await settled();
    assert.equal(fixture.backend.count('PUT'), 1);
  });

  it('stays when its client goes away, of whatever length it is', async () => {
    const request = await beginHalf();
    const content = randomBytes(SENT.length);
    put(content);
    request.destroy();
    await settled();
    assert.equal(file()?.toString('hex'), content.toString('hex'));
  });

  for (const [what, content, isKept] of [
    ['another file', OF_OTHERS, true],
    ['another file that begins alike', Buffer.concat([SENT.subarray(0, 4_000), OF_OTHERS]), true],
    ['the same file as a whole', BODY, true],
    ['nothing else', SENT, false],
  ] as const)
    it(`is told by the proxy after a killed one from half a file: ${what}`, async () => {
      const request = await beginHalf();
      put(content);
      await cp(join(fixture.folder, 'proxy/journal'), join(fixture.folder, 'next/journal'), {
        recursive: true,
      });
      const next = new WebdavProxy(join(fixture.folder, 'next'), () => undefined);
      await next.open();
      await next.take(fixture.state);
      await settled('next');
      assert.equal(file()?.toString('hex'), isKept ? content.toString('hex') : undefined);
      await next.take({ ...fixture.state, shares: [] });
      request.destroy();
    });

  it('stays, as half a file does, where a former version has noted nothing of the content', async () => {
    await fixture.proxy.journal.begin({ kind: 'new', share: 'team', parts: ['a'], headers: { host: 'nas' } });
    put(OF_OTHERS);
    const said: string[] = [];
    const next = new WebdavProxy(join(fixture.folder, 'proxy'), (sentence) => void said.push(sentence));
    await next.open();
    await next.take(fixture.state);
    await settled();
    assert.equal(file()?.toString('latin1'), 'of others');
    assert.match(said.join('\n'), /^upload of \/team\/a may not have come to its end/);
    await next.take({ ...fixture.state, shares: [] });
  });

  for (const [what, headers] of [
    ['a small upload', { 'content-length': '60000' }],
    ['one of a length that nobody has told', { 'transfer-encoding': 'chunked' }],
    ['a large one of which little has come', { 'content-length': String(BODY.length) }],
  ] as const)
    it(`stays when ${what} breaks off, of which the backend has not heard`, async () => {
      // As rclone's server: what has come is put in its place at the very end, be that the end of it or not.
      fixture.backend.before = (request, response) => {
        if (request.method !== 'PUT') return false;
        response.writeContinue();
        const pieces: Buffer[] = [];
        request.on('data', (piece: Buffer) => pieces.push(piece));
        request.once('close', () => {
          put(Buffer.concat(pieces));
          response.writeHead(201).end();
        });
        return true;
      };
      const request = begin(headers);
      request.write(BODY.subarray(0, 20_000));
      const come = (): number => fixture.proxy.visitors.sessions.list()[0]?.fromClient ?? 0;
      await until('it has come to the proxy', () => come() > 20_000, PATIENCE);
      // A backend is asked within a moment, if at all.
      await sleep(300);
      put(OF_OTHERS);
      request.destroy();
      await until('the proxy has noticed', async () => (await fixture.clients()) === 0, PATIENCE);
      await settled();
      assert.equal(file()?.toString('latin1'), 'of others');
      assert.equal(fixture.backend.count('PUT'), 0);
    });

  it('stays when it came before a slow client had sent anything', async () => {
    const request = begin();
    const answered = new Promise<number>((resolve) =>
      request.once('response', (response) => resolve(response.resume().statusCode ?? 0)),
    );
    await until('the backend is asked', () => fixture.backend.count('PROPFIND') === 1, PATIENCE);
    await sleep(1_200);
    put(OF_OTHERS);
    request.end(BODY);
    assert.equal(await answered, 502);
    assert.equal(file()?.toString('latin1'), 'of others');
  });
});
