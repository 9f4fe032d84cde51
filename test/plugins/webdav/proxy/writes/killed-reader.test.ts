/** What reads from the NAS below a share is killed in the very moment in which an upload is put in its place. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { instanceOf } from '../../../../../plugins/webdav/proxy/instance.ts';
import { sleep, until } from '../../../../support/platform/wait.ts';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const BODY = randomBytes(3_000);
const DEAD_MS = 200;

describe('an upload whose share cannot be read for a moment', () => {
  let fixture: ProxyFixture;
  before(async () => (fixture = await ProxyFixture.open()));
  after(() => fixture.close());

  const living = instanceOf(process.pid);
  const readBy = (reader: string): Promise<void> => {
    const { backend } = fixture.share('team');
    return fixture.tell({
      shares: [fixture.share('team', { backend: { ...backend, behind: living, reader } })],
    });
  };
  const left = async (): Promise<readonly string[]> => [
    ...(await readdir(join(fixture.folder, 'proxy/journal'))),
    ...(await readdir(fixture.state.spool)),
  ];
  const file = (): string | undefined => fixture.backend.files.get('/team/a')?.toString('hex');

  /** As rclone's server (1.75): refuses to open the file, or finds that it cannot when it has the whole body. */
  const refuse = async (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
  ): Promise<void> => {
    if (status === 405) {
      response.writeContinue();
      for await (const _ of request);
    }
    await readBy(`${living}0`);
    response.writeHead(status).end();
  };
  /** The next upload is refused so. `meanwhile`: what others do then. */
  const killedOnce = (status: number, meanwhile: () => void = () => undefined): void => {
    let isKilled = false;
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT' || isKilled) return false;
      isKilled = true;
      void refuse(request, response, status)
        .then(() => sleep(DEAD_MS))
        .then(meanwhile)
        .then(() => readBy(`${living}`));
      return true;
    };
  };

  beforeEach(async () => {
    fixture.backend.before = () => false;
    fixture.backend.files.clear();
    fixture.backend.times.clear();
    fixture.backend.seen.length = 0;
    await readBy(living);
    // A listing is kept for a second.
    await sleep(1_200);
  });

  for (const status of [404, 405, 409])
    for (const [what, content, answered] of [
      ['a new file', undefined, 201],
      ['an empty file', '', 204],
      ['a file', 'former', 204],
    ] as const)
      it(`comes into the place of ${what} after ${status}, with its time`, async () => {
        if (content !== undefined) fixture.backend.files.set('/team/a', Buffer.from(content));
        fixture.backend.times.set('/team/a', 1_500_000_000_000);
        killedOnce(status);
        const headers = { 'x-oc-mtime': '1600000000' };
        const reply = await fixture.ask('PUT', '/team/a', { body: BODY, headers });
        assert.equal(reply.status, answered, reply.text);
        assert.equal(file(), BODY.toString('hex'));
        assert.equal(fixture.backend.times.get('/team/a'), 1_600_000_000_000);
        assert.equal(fixture.backend.count('PUT'), 2);
        assert.deepEqual(await left(), []);
      });

  it('is sent once more without a length, too', async () => {
    killedOnce(405);
    const headers = { 'transfer-encoding': 'chunked' };
    assert.equal((await fixture.ask('PUT', '/team/a', { body: BODY, headers })).status, 201);
    assert.equal(file(), BODY.toString('hex'));
  });

  for (const [what, content, headers, answered] of [
    ['in the place of a new file', undefined, {}, 502],
    ['in the place of an empty one', '', {}, 502],
    ['in the place of a file', 'former', {}, 503],
    ['against the condition of its client', undefined, { 'if-none-match': '*' }, 412],
  ] as const)
    it(`replaces nothing that others have put there meanwhile, ${what}`, async () => {
      if (content !== undefined) fixture.backend.files.set('/team/a', Buffer.from(content));
      fixture.backend.times.set('/team/a', 1_500_000_000_000);
      killedOnce(405, () => {
        fixture.backend.files.set('/team/a', Buffer.from('of others'));
        fixture.backend.times.set('/team/a', Date.now() + 2_300);
      });
      const { status } = await fixture.ask('PUT', '/team/a', { body: BODY, headers });
      assert.equal(status, answered);
      await until('it is settled', async () => (await left()).length === 0, { timeoutMs: 10_000 });
      assert.equal(fixture.backend.files.get('/team/a')?.toString(), 'of others');
      assert.equal(fixture.backend.count('PUT'), 1);
    });

  it('is sent once where something else was the matter', async () => {
    fixture.backend.before = ({ method }, response) =>
      method === 'PUT' && Boolean(response.writeHead(405).end());
    assert.equal((await fixture.ask('PUT', '/team/a', { body: BODY })).status, 502);
    assert.equal(fixture.backend.count('PUT'), 1);
  });

  it('is answered 503 when it is too large to be kept', async () => {
    killedOnce(405);
    assert.equal((await fixture.ask('PUT', '/team/a', { body: randomBytes(400_000) })).status, 503);
    assert.deepEqual([fixture.backend.count('PUT'), await left()], [1, []]);
  });

  it('is answered 503 when nothing can be read for long', async () => {
    fixture.backend.before = (request, response) => {
      if (request.method === 'PUT') void refuse(request, response, 405);
      return request.method === 'PUT';
    };
    assert.equal((await fixture.ask('PUT', '/team/a', { body: BODY })).status, 503);
    assert.deepEqual([fixture.backend.count('PUT'), await left()], [1, []]);
  });

  /** Answers as rclone's server does when the file system gives an error, once. */
  const failOnce = (method: string, status: number, isRevived: boolean): void => {
    let failed = 0;
    fixture.backend.before = (request, response) => {
      if (request.method !== method) return false;
      failed += 1;
      if (failed > 1) response.writeHead(201).end();
      else
        void readBy(`${living}0`)
          .then(() => response.writeHead(status).end())
          .then(() => sleep(DEAD_MS))
          .then(() => (isRevived ? readBy(living) : undefined));
      return true;
    };
  };

  for (const status of [405, 409])
    it(`has its like in a folder that is not made then (${status}), and is made afterwards`, async () => {
      failOnce('MKCOL', status, true);
      assert.equal((await fixture.ask('MKCOL', '/team/folder/')).status, 201);
    });

  for (const [method, status] of [
    ['MOVE', 403],
    ['COPY', 500],
  ] as const)
    it(`has its like in a ${method}, which is not said to be forbidden, and not repeated`, async () => {
      fixture.backend.files.set('/team/a', BODY);
      failOnce(method, status, false);
      const reply = await fixture.ask(method, '/team/a', { headers: { destination: '/team/b' } });
      assert.deepEqual([reply.status, fixture.backend.count(method)], [503, 1]);
    });
});
