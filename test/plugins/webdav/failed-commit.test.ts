/**
 * An upload over a file that the engine has begun to write and not ended: its content must still come into
 * its place.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../plugins/webdav/proxy/proxy.ts';
import type { Upload } from '../../../plugins/webdav/proxy/writes/journal.ts';
import { until } from '../../support/until.ts';
import { FrontHouse } from './fake-engine.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 20 };
/** What goes through the proxy's memory, and what goes through its disk. */
const SIZES = [10, 400_000];

describe('an upload over a file, in the front of WebDAV, when the engine fails in the middle', () => {
  let house: FrontHouse;
  beforeEach(async () => (house = await FrontHouse.open()));
  afterEach(() => house.close());

  const file = (): Buffer | undefined => house.engine.files.get('/team/a');
  const notes = async (): Promise<readonly Upload[]> => {
    const folder = join(house.folder, 'front/journal');
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
    return Promise.all(
      names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as Upload),
    );
  };
  const left = async (): Promise<readonly string[]> => [
    ...(await readdir(join(house.folder, 'front/journal'))),
    ...(await readdir(house.state.spool)),
  ];
  /** The next ones of these uploads tear the file. */
  const tearing = (
    times: number,
    end: (request: IncomingMessage, response: ServerResponse) => void,
  ): void => {
    house.engine.files.set('/team/a', Buffer.from('old'));
    let torn = 0;
    house.engine.before = (request, response) => {
      if (request.method !== 'PUT' || torn >= times) return false;
      torn += 1;
      house.engine.files.set('/team/a', Buffer.from('torn'));
      end(request, response);
      return true;
    };
  };
  const refuse = (_: IncomingMessage, response: ServerResponse): void => void response.writeHead(500).end();

  for (const size of SIZES) {
    it(`puts ${size} bytes in their place afterwards, and tells the client that it was not done`, async () => {
      tearing(1, refuse);
      const body = randomBytes(size);
      assert.equal((await house.ask('PUT', '/team/a', { body })).status, 502);
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    });

    it(`notes ${size} bytes on the disk, and the next front puts them in their place when this one is killed`, async () => {
      tearing(Infinity, refuse);
      const body = randomBytes(size);
      assert.equal((await house.ask('PUT', '/team/a', { body })).status, 502);
      // The front tries twice more by itself, in vain. Then it has no more share, as if it were killed.
      await until('it was tried three times', () => house.engine.count('PUT') === 3, PATIENCE);
      const shown = house.state;
      await house.tell({ shares: [] });
      const [note, ...others] = await notes();
      assert.deepEqual([note?.kind, note?.share, note?.parts, others.length], ['whole', 'team', ['a'], 0]);
      assert.ok((await readFile(note?.body ?? '')).equals(body));
      house.engine.before = () => false;
      const next = new WebdavProxy(join(house.folder, 'front'), () => undefined);
      await next.open();
      await next.take(shown);
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
      await next.take(house.state);
    });

    it(`puts ${size} bytes in their place when the share that went with its engine is back`, async () => {
      let gone: Promise<void> = Promise.resolve();
      tearing(1, (request) => {
        gone = house.tell({ shares: [] });
        request.destroy();
      });
      const body = randomBytes(size);
      assert.notEqual((await house.ask('PUT', '/team/a', { body })).status, 204);
      await gone;
      assert.deepEqual([file()?.toString(), (await notes()).length], ['torn', 1]);
      await house.tell({ shares: [house.share('team')] });
      await until('the content is in its place', () => file()?.equals(body), PATIENCE);
      await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    });
  }
});
