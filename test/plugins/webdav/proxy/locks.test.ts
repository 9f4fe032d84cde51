/** Locks of users who may not write any more, by the proxy in one process with a fake backend. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { LockBook } from '../../../../plugins/webdav/proxy/lock-book.ts';
import type { Upstream } from '../../../../plugins/webdav/proxy/upstream.ts';
import { until } from '../../../support/platform/wait.ts';
import { basic, FIRST_BYTES, ProxyFixture } from '../../../support/webdav/fake-backend.ts';

const SOON = { timeoutMs: 5_000, everyMs: 5 };
const BOTH = { access: { team: { write: ['alice', 'bob'], read: [] } } };
const LOST = { access: { team: { write: ['alice'], read: ['bob'] } } };
const TOKEN = '<urn:uuid:1>';
const BOB = basic('bob', 'wonder:land');

describe('locks of who is put out of a share over WebDAV', () => {
  let fixture: ProxyFixture;
  let isLocked: boolean;
  let isInUse: boolean;
  beforeEach(async () => {
    fixture = await ProxyFixture.open();
    await fixture.tell({
      users: ['alice', 'bob'].map((name) => ({ name, password: 'wonder:land' })),
      access: { team: { write: ['alice', 'bob'], read: [] } },
    });
    [isLocked, isInUse] = [false, false];
    // As the real ones: a lock is not given up while a request goes by it, and holds off all others.
    fixture.backend.before = ({ method, headers }, response) => {
      const refuse = (status: number) => Boolean(response.writeHead(status).end());
      if (method === 'LOCK') {
        isLocked = true;
        return Boolean(response.writeHead(200, { 'lock-token': TOKEN }).end());
      }
      if (method === 'UNLOCK') {
        if (isInUse) return refuse(423);
        isLocked = false;
        return refuse(204);
      }
      if (method !== 'PUT' && method !== 'DELETE') return false;
      if ((headers.if !== undefined) !== isLocked) return refuse(isLocked ? 423 : 412);
      isInUse = isLocked;
      response.once('close', () => (isInUse = false));
      return false;
    };
  });
  afterEach(() => fixture.close());

  const lock = () => fixture.ask('LOCK', '/team/a', { headers: { authorization: BOB } });
  const changes = () =>
    fixture.backend.seen.map(({ method }) => method).filter((method) => method !== 'PROPFIND');

  it('are given up once the upload that goes by them is taken back', async () => {
    await lock();
    const headers = { authorization: BOB, if: `(${TOKEN})` };
    const where = {
      port: fixture.port,
      host: '127.0.0.1',
      path: '/team/a',
      agent: false,
    };
    const sending = httpRequest({ ...where, method: 'PUT', headers }).on('error', () => undefined);
    sending.write('half'.padEnd(FIRST_BYTES));
    const written = () => fixture.backend.files.get('/team/a')?.length;
    await until('it has begun', () => written() === FIRST_BYTES, SOON);
    await fixture.tell(LOST);
    await until('the lock is gone', () => !isLocked, SOON);
    assert.deepEqual(changes(), ['LOCK', 'PUT', 'GET', 'DELETE', 'UNLOCK']);
    assert.equal(fixture.backend.files.has('/team/a'), false);
    assert.equal((await fixture.ask('PUT', '/team/a', { body: 'whole' })).status, 201);
  });

  it('are given up as soon as nothing uses them any more', async () => {
    await lock();
    isInUse = true;
    await fixture.tell(LOST);
    await until('it was tried', () => fixture.backend.count('UNLOCK') === 1, SOON);
    assert.equal(isLocked, true);
    isInUse = false;
    await until('the lock is gone', () => !isLocked, SOON);
  });

  it('stay when who was put out may write again by then, and go when he is put out again', async () => {
    await lock();
    isInUse = true;
    await fixture.tell(LOST);
    await until('it was tried', () => fixture.backend.count('UNLOCK') === 1, SOON);
    await fixture.tell(BOTH);
    isInUse = false;
    // Longer than until the next try.
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    assert.deepEqual([isLocked, fixture.backend.count('UNLOCK')], [true, 1]);
    await fixture.tell(LOST);
    await until('the lock is gone', () => !isLocked, SOON);
  });

  it('are given up also when the backend had not answered them yet', async () => {
    const answer = fixture.backend.before;
    let grant: (() => void) | undefined;
    fixture.backend.before = (request, response) => {
      if (request.method !== 'LOCK') return answer(request, response);
      grant = () => void answer(request, response);
      return true;
    };
    const asked = lock().catch(() => 'cut');
    await until('it is under way', () => grant !== undefined, SOON);
    await fixture.tell(LOST);
    assert.equal(await asked, 'cut');
    grant?.();
    assert.equal(isLocked, true);
    await until('the lock is gone', () => !isLocked, SOON);
    assert.deepEqual(changes(), ['LOCK', 'UNLOCK']);
  });

  it('are tried more and more seldom, and left to end by themselves after some minutes', async () => {
    const clock = createManualClock();
    const triedAtS: number[] = [];
    const ask = async () => {
      triedAtS.push(clock.monotonic() / 1_000);
      return { statusCode: 423, resume: () => undefined };
    };
    const upstream = { name: 'team', attached: { ask } } as unknown as Upstream;
    const locks = new LockBook(clock);
    locks.note(TOKEN, { user: 'bob', upstream, path: '/a', host: 'localhost' });
    const begunAtS = clock.monotonic() / 1_000;
    const done = locks.keepOnly(() => false, []);
    for (let second = 0; second < 3_600; second += 1) await clock.advance(1_000);
    await done;
    assert.deepEqual(
      triedAtS.map((at) => at - begunAtS),
      [0, 1, 3, 7, 15, 31, 61, 91, 121, 151, 181, 211, 241, 271],
    );
  });
});
