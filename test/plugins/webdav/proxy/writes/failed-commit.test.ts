/**
 * An upload over a file that the backend has begun to write and not ended: its content must still come into
 * its place.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../../../plugins/webdav/proxy/proxy.ts';
import type { Upload } from '../../../../../plugins/webdav/proxy/writes/journal.ts';
import { until } from '../../../../support/platform/wait.ts';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 20 };
/** What goes through the proxy's memory, and what goes through its disk. */
const SIZES = [10, 400_000];

describe('an upload over a file, in the proxy of WebDAV, when the backend fails in the middle', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  const file = (): Buffer | undefined => fixture.backend.files.get('/team/a');
  const notes = async (): Promise<readonly Upload[]> => {
    const folder = join(fixture.folder, 'proxy/journal');
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
    return Promise.all(
      names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as Upload),
    );
  };
  const left = async (): Promise<readonly string[]> => [
    ...(await readdir(join(fixture.folder, 'proxy/journal'))),
    ...(await readdir(fixture.state.spool)),
  ];
  /** The next ones of these uploads tear the file. */
  const tearing = (
    times: number,
    body: Buffer,
    end: (request: IncomingMessage, response: ServerResponse) => void,
  ): void => {
    fixture.backend.files.set('/team/a', Buffer.from('old'));
    let torn = 0;
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT' || torn >= times) return false;
      torn += 1;
      fixture.backend.files.set('/team/a', body.subarray(0, 4));
      end(request, response);
      return true;
    };
  };
  const refuse = (_: IncomingMessage, response: ServerResponse): void => void response.writeHead(500).end();

  for (const size of SIZES) {
    it(`puts ${size} bytes in their place afterwards, and tells the client that it was not done`, async () => {
      const body = randomBytes(size);
      tearing(1, body, refuse);
      assert.equal((await fixture.ask('PUT', '/team/a', { body })).status, 502);
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    });

    it(`puts ${size} bytes in their place when the lock has gone with the former backend`, async () => {
      const body = randomBytes(size);
      tearing(1, body, (request) => void request.destroy());
      const tear = fixture.backend.before;
      fixture.backend.before = (request, response) => {
        if (tear(request, response)) return true;
        const isRefused = request.method === 'PUT' && request.headers.if !== undefined;
        if (isRefused) response.writeHead(412).end();
        return isRefused;
      };
      const { status } = await fixture.ask('PUT', '/team/a', { body, headers: { if: '(<urn:x>)' } });
      assert.equal(status, 204);
      assert.ok(file()?.equals(body));
      assert.deepEqual(await left(), []);
    });

    for (const refusal of [403, 404, 409, 423])
      it(`keeps ${size} bytes for the file that is torn by then, though the next try meets ${refusal}`, async () => {
        const body = randomBytes(size);
        tearing(1, body, (request) => void request.destroy());
        const tear = fixture.backend.before;
        let refused = 0;
        fixture.backend.before = (request, response) => {
          if (tear(request, response)) return true;
          const isRefused = request.method === 'PUT' && refused === 0;
          if (isRefused) response.writeHead(refusal).end(String((refused += 1)));
          return isRefused;
        };
        assert.notEqual((await fixture.ask('PUT', '/team/a', { body })).status, 204);
        await until('the content is in its place', () => file()?.equals(body), PATIENCE);
        await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
      });

    it(`notes ${size} bytes on the disk, and the next proxy commits them when this one is killed`, async () => {
      const body = randomBytes(size);
      tearing(Infinity, body, refuse);
      assert.equal((await fixture.ask('PUT', '/team/a', { body })).status, 502);
      // The proxy tries twice more by itself, in vain. Then it has no more share, as if it were killed.
      await until('it was tried three times', () => fixture.backend.count('PUT') === 3, PATIENCE);
      const shown = fixture.state;
      await fixture.tell({ shares: [] });
      const [note, ...others] = await notes();
      assert.deepEqual([note?.kind, note?.share, note?.parts, others.length], ['whole', 'team', ['a'], 0]);
      assert.ok((await readFile(note?.body ?? '')).equals(body));
      fixture.backend.before = () => false;
      const next = new WebdavProxy(join(fixture.folder, 'proxy'), () => undefined);
      await next.open();
      await next.take(shown);
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
      await next.take(fixture.state);
    });

    it(`puts ${size} bytes in their place when the share that went with its backend is back`, async () => {
      const body = randomBytes(size);
      let gone: Promise<void> = Promise.resolve();
      tearing(1, body, (request) => {
        gone = fixture.tell({ shares: [] });
        request.destroy();
      });
      assert.notEqual((await fixture.ask('PUT', '/team/a', { body })).status, 204);
      await gone;
      assert.deepEqual([file()?.length, (await notes()).length], [4, 1]);
      await fixture.tell({ shares: [fixture.share('team')] });
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    });
  }
});
