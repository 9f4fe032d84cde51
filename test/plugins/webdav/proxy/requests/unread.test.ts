import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getDefaultHighWaterMark, setDefaultHighWaterMark } from 'node:stream';
import { after, before, beforeEach, describe, it } from 'node:test';
import { instanceOf } from '../../../../../plugins/webdav/proxy/instance.ts';
import { sleep } from '../../../../support/platform/wait.ts';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const SHARE_ITSELF =
  '<?xml version="1.0" encoding="UTF-8"?><D:multistatus xmlns:D="DAV:">' +
  '<D:response><D:href>/team/</D:href></D:response></D:multistatus>';
const DEPTH_1 = { depth: '1' };

/** As rclone's server (1.75) on a folder whose file system gives an error. */
function answerBlindly({ method, headers }: IncomingMessage, response: ServerResponse): boolean {
  const isListing = method === 'PROPFIND' && headers.depth === '1';
  if (isListing) response.writeHead(207).end(`${SHARE_ITSELF}Internal Server Error`);
  else if (method === 'GET' || method === 'HEAD') response.writeHead(404).end('Not Found');
  else response.writeHead(method === 'LOCK' ? 500 : 405).end('Method Not Allowed');
  return true;
}

describe('a share whose files a backend beside its mount cannot read', () => {
  let fixture: ProxyFixture;
  let heard = 0;
  before(async () => {
    fixture = await ProxyFixture.open();
    const { backend } = fixture.share('team');
    await fixture.tell({
      shares: [fixture.share('team', { backend: { ...backend, behind: instanceOf(process.pid) } })],
    });
  });
  after(() => fixture.close());
  beforeEach(() => {
    fixture.backend.files.set('/team/a', Buffer.from('hi'));
    fixture.backend.files.set('/team/', Buffer.from(SHARE_ITSELF));
  });

  /** Cannot read for so many requests. */
  const blindFor = (count: number): void => {
    heard = 0;
    fixture.backend.before = (request, response) => {
      heard += 1;
      return heard <= count && answerBlindly(request, response);
    };
  };

  for (const [method, path, status, headers] of [
    ['GET', '/team/a', 200, {}],
    ['HEAD', '/team/a', 200, {}],
    ['PROPFIND', '/team/a', 207, { depth: '0' }],
    ['PROPFIND', '/team/', 207, DEPTH_1],
    ['PUT', '/team/a', 204, {}],
    ['PUT', '/team/new', 201, {}],
    ['DELETE', '/team/a', 204, {}],
  ] as const) {
    it(`is waited for by ${method} ${path} (${status})`, async () => {
      blindFor(4);
      const reply = await fixture.ask(method, path, { headers, ...(method === 'PUT' && { body: 'new' }) });
      assert.equal(reply.status, status, reply.text);
      assert.doesNotMatch(reply.text, /Internal Server Error/);
      assert.ok(heard > 4);
    });
  }

  it('shows what is there at once while its reader is dead, and what is missing when there is another', async () => {
    const [dead, living] = [`${instanceOf(process.pid)}0`, instanceOf(process.pid)];
    const backend = { ...fixture.share('team').backend, behind: living };
    const readBy = (reader: string) =>
      fixture.tell({ shares: [fixture.share('team', { backend: { ...backend, reader } })] });
    await readBy(dead);
    // As rclone's server does where a listing leaves out what could not be looked at.
    fixture.backend.before = ({ headers }, response) =>
      headers.depth === '1' && Boolean(response.writeHead(207).end('cut'));
    assert.equal((await fixture.ask('GET', '/team/a')).status, 200);
    const missing = [
      fixture.ask('GET', '/team/late'),
      fixture.ask('PROPFIND', '/team/late', { headers: { depth: '0' } }),
      fixture.ask('PROPFIND', '/team/', { headers: DEPTH_1 }),
    ];
    const settled = await Promise.race([...missing, sleep(500)]);
    assert.equal(settled, undefined, 'all wait');
    await readBy(living);
    assert.equal(await Promise.race([...missing, sleep(500)]), undefined, 'a listing is kept for a second');
    fixture.backend.files.set('/team/late', Buffer.from('hi'));
    fixture.backend.before = () => false;
    assert.deepEqual(
      (await Promise.all(missing)).map(({ status }) => status),
      [200, 207, 207],
    );
    assert.equal((await fixture.ask('GET', '/team/nothing')).status, 404);
  });

  it('hands a listing on whole, short or long', async () => {
    for (const length of [0, 10_000, 100_000]) {
      const listing = `${SHARE_ITSELF}${' '.repeat(length)}`;
      fixture.backend.before = (_request, response) => {
        response.writeHead(207);
        for (let at = 0; at < listing.length; at += 9_000) response.write(listing.slice(at, at + 9_000));
        response.end();
        return true;
      };
      const asked = '<D:propfind xmlns:D="DAV:"><D:prop><D:getetag/></D:prop></D:propfind>';
      const reply = await fixture.ask('PROPFIND', '/team/', { headers: DEPTH_1, body: asked });
      assert.equal(reply.text, listing);
    }
  });

  it('hands on a listing of which as much has come as is kept unread', async () => {
    const kept = 16_384;
    const listing = SHARE_ITSELF.padEnd(kept + 1);
    const usual = getDefaultHighWaterMark(false);
    setDefaultHighWaterMark(false, kept);
    try {
      // A connection that is made now.
      const { backend } = fixture.share('team');
      const behind = instanceOf(process.pid);
      await fixture.tell({
        shares: [fixture.share('team', { backend: { ...backend, instance: 'next', behind } })],
      });
      fixture.backend.before = (_request, response) => {
        response.writeHead(207, { 'content-length': listing.length }).write(listing.slice(0, kept));
        setTimeout(() => response.end(listing.slice(kept)), 100);
        return true;
      };
      assert.equal((await fixture.ask('PROPFIND', '/team/', { headers: DEPTH_1 })).text, listing);
    } finally {
      setDefaultHighWaterMark(false, usual);
    }
  });

  it('asks again for a listing whose connection ends first', async () => {
    let asked = 0;
    fixture.backend.before = (_request, response) => {
      asked += 1;
      if (asked > 1) return false;
      response.writeHead(207, { 'content-length': 10_000 }).write(SHARE_ITSELF, () => response.destroy());
      return true;
    };
    assert.equal((await fixture.ask('PROPFIND', '/team/', { headers: DEPTH_1 })).status, 207);
    assert.equal(asked, 2);
  });

  it('says of a name that nothing has at once that it is not there', async () => {
    blindFor(0);
    assert.equal((await fixture.ask('GET', '/team/nothing')).status, 404);
    assert.equal(heard, 2);
  });

  for (const [method, headers] of [
    ['LOCK', {}],
    ['MOVE', { destination: '/team/kept', overwrite: 'F' }],
    ['COPY', { destination: '/team/kept', overwrite: 'F' }],
  ] as const)
    it(`hears of a ${method} once it can look: what it does not find it would make anew, or replace`, async () => {
      fixture.backend.files.set('/team/kept', Buffer.from('kept'));
      let blind = 4;
      const order: string[] = [];
      fixture.backend.before = (request, response) => {
        if (request.method === method) order.push(`${method} ${blind > 0 ? 'blind' : 'sees'}`);
        blind -= 1;
        return blind >= 0 && answerBlindly(request, response);
      };
      const { status } = await fixture.ask(method, '/team/a', {
        headers,
        ...(method === 'LOCK' && { body: '<D:lockinfo xmlns:D="DAV:"/>' }),
      });
      if (method === 'LOCK') assert.deepEqual(order, ['LOCK sees']);
      else assert.deepEqual([status, order], [412, []]);
    });

  it('is said to be unreadable after a wait, never to be gone, and then nobody waits for a while', async () => {
    blindFor(Infinity);
    const asked = (): Promise<readonly number[]> =>
      Promise.all(
        [
          fixture.ask('GET', '/team/a'),
          fixture.ask('PROPFIND', '/team/', { headers: DEPTH_1 }),
          fixture.ask('MKCOL', '/team/new/'),
        ].map(async (reply) => (await reply).status),
      );
    assert.deepEqual(await asked(), [503, 503, 503]);
    const before = heard;
    assert.deepEqual(await asked(), [503, 503, 503]);
    assert.equal(heard - before, 4, 'each asks once, one looks whether it may be there');
    fixture.backend.before = () => false;
    assert.equal((await fixture.ask('GET', '/team/a')).status, 200);
  });
});
