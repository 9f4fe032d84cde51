/**
 * An upload over a file that failed in the backend and took the file away, as rclone's server does where the disk is
 * full: its content, which is all that there is, comes back into its own place, and over nothing of others.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../../../plugins/webdav/proxy/proxy.ts';
import { Journal } from '../../../../../plugins/webdav/proxy/writes/journal.ts';
import { until } from '../../../../support/platform/wait.ts';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 20 };
const FILE = '/team/in/a';
/** What goes through the proxy's memory, and what goes through its disk. */
const SIZES = [10, 400_000];

describe('content whose file a failed write took away, in the proxy of WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => {
    fixture = await ProxyFixture.open();
    fixture.backend.files.set('/team/in', Buffer.from('a folder'));
    fixture.backend.files.set(FILE, Buffer.from('old'));
  });
  afterEach(() => fixture.close());

  const file = (): Buffer | undefined => fixture.backend.files.get(FILE);
  const notes = async (): Promise<readonly string[]> =>
    (await readdir(join(fixture.folder, 'proxy/journal'))).filter((name) => name.endsWith('.json'));
  const left = async (): Promise<readonly string[]> => [
    ...(await notes()),
    ...(await readdir(fixture.state.spool)),
  ];
  const inPlace = async (body: Buffer): Promise<void> => {
    await until('the content is in its place', () => file()?.equals(body) === true, PATIENCE);
    await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
  };
  const onPut = (act: (request: IncomingMessage, response: ServerResponse) => void): void => {
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT') return false;
      act(request, response);
      return true;
    };
  };
  const refuse = (_: IncomingMessage, response: ServerResponse): void => {
    fixture.backend.files.delete(FILE);
    response.writeHead(500).end();
  };
  /** It fails, the proxy tries twice more by itself, in vain, and has its share no more. */
  const fail = async (body: Buffer): Promise<void> => {
    onPut(refuse);
    assert.equal((await fixture.ask('PUT', FILE, { body })).status, 502);
    await until('it was tried three times', () => fixture.backend.count('PUT') === 3, PATIENCE);
    await fixture.tell({ shares: [] });
    fixture.backend.before = () => false;
    assert.deepEqual(fixture.proxy.clearUp.kept, [], 'people hear of it after a minute');
  };
  const kept = (): Promise<unknown> =>
    until(
      'it is told where it is kept',
      () => fixture.said.some((one) => /is kept for a month in \//.test(one)),
      PATIENCE,
    );
  const attach = (place = 'here', instance = 'first'): Promise<void> => {
    const share = fixture.share('team', { place });
    return fixture.tell({ shares: [{ ...share, backend: { ...share.backend, instance } }], returning: [] });
  };

  for (const size of SIZES) {
    it(`comes back at once where that can be (${size} bytes)`, async () => {
      const body = randomBytes(size);
      let failed = 0;
      onPut(refuse);
      const { before } = fixture.backend;
      fixture.backend.before = (request, response) =>
        request.method === 'PUT' && (failed += 1) > 1 ? false : before(request, response);
      assert.equal((await fixture.ask('PUT', FILE, { body })).status, 502);
      await inPlace(body);
    });

    it(`waits for its own place when its share shows another (${size} bytes)`, async () => {
      const body = randomBytes(size);
      await fail(body);
      await attach('elsewhere');
      await kept();
      assert.deepEqual([file(), (await notes()).length], [undefined, 1]);
      await fixture.tell({ shares: [] });
      await attach();
      await inPlace(body);
    });
  }

  it('goes nowhere else when its share shows another place while it waits to write', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    let looks = 0;
    fixture.backend.before = ({ method, url }) => {
      // Before the look that comes right before it is written, which the share does not take now.
      if (method === 'PROPFIND' && url === '/team/in' && (looks += 1) === 1)
        void fixture.tell({ shares: [fixture.share('team', { readOnly: true, isFrozen: true })] });
      return false;
    };
    await attach();
    await until('it is under way', () => looks === 1, PATIENCE);
    await fixture.tell({ shares: [], returning: ['team'] });
    await attach('elsewhere', 'second');
    await kept();
    assert.deepEqual([file(), (await notes()).length, fixture.backend.count('PUT')], [undefined, 1, 3]);
  });

  it('is put over nothing that others have saved by then', async () => {
    await fail(randomBytes(400_000));
    // After the look that finds nothing, and before the one that comes right before it is written.
    let looks = 0;
    fixture.backend.before = ({ method, url }) => {
      if (method === 'PROPFIND' && url === FILE && (looks += 1) === 2)
        fixture.backend.files.set(FILE, Buffer.from('theirs'));
      return false;
    };
    await attach();
    await until('theirs is there', () => looks > 1, PATIENCE);
    await fixture.tell({ shares: [] });
    await attach();
    await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    assert.equal(file()?.toString(), 'theirs');
  });

  it('waits for its folder where somebody has moved that away', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    fixture.backend.files.delete('/team/in');
    await attach();
    await kept();
    assert.deepEqual([file(), (await notes()).length], [undefined, 1]);
    fixture.backend.files.set('/team/in', Buffer.from('a folder'));
    await fixture.tell({ shares: [] });
    await attach();
    await inPlace(body);
  });

  it('is tried at once when its share has changed while it was tried', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    fixture.backend.files.delete('/team/in');
    fixture.backend.before = ({ url }, response) => {
      if (url !== '/team/in' || fixture.backend.files.has(url)) return false;
      fixture.backend.files.set(url, Buffer.from('a folder'));
      void attach().then(() => response.writeHead(404).end());
      return true;
    };
    await attach();
    await inPlace(body);
  });

  it('is kept, and put nowhere, where users may have removed the file', async () => {
    const body = randomBytes(400_000);
    const kept = join(fixture.state.spool, 'one.part');
    await writeFile(kept, body);
    // As a proxy leaves it that was killed before it had looked what the failed write has done.
    const upload = {
      kind: 'whole' as const,
      share: 'team',
      parts: ['in', 'a'],
      headers: {},
      body: kept,
      size: body.length,
      place: 'here',
    };
    await new Journal(join(fixture.folder, 'proxy/journal')).begin(upload, Date.now() - 61_000);
    fixture.backend.files.delete(FILE);
    const said: string[] = [];
    const next = new WebdavProxy(join(fixture.folder, 'proxy'), (sentence) => said.push(sentence));
    await next.open();
    await next.take({ ...fixture.state, shares: [fixture.share('team')] });
    await until('it is told', () => said.length === 1, PATIENCE);
    assert.deepEqual(next.clearUp.kept, [{ share: 'team', path: 'in/a', file: kept }]);
    assert.match(
      said[0] ?? '',
      /in\/a did not come to its end, and its content cannot be put in its place now: it is kept/,
    );
    assert.ok((await readFile(kept)).equals(body));
    assert.deepEqual([file(), fixture.backend.count('PUT'), (await notes()).length], [undefined, 0, 1]);
    await next.take({ ...fixture.state, shares: [] });
  });

  it('comes to its end when it broke off while it was put back', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    let broken = 0;
    onPut((request) => {
      broken += 1;
      fixture.backend.files.set(FILE, body.subarray(0, 100_000));
      fixture.backend.times.set(FILE, Date.now());
      fixture.backend.before = () => false;
      request.destroy();
    });
    await attach();
    await until('it broke off', () => broken === 1, PATIENCE);
    await fixture.tell({ shares: [] });
    await attach();
    await inPlace(body);
  });

  it('comes to its end when its proxy was killed while it was put back', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    let held: ServerResponse | undefined;
    onPut((_, response) => {
      held = response;
      fixture.backend.files.set(FILE, body.subarray(0, 100_000));
      fixture.backend.times.set(FILE, Date.now());
    });
    // It was running long ago.
    for (const name of await notes())
      await utimes(join(fixture.folder, 'proxy/journal', name), 1, Date.now() / 1_000 - 60);
    await attach();
    await until('it is under way', () => held !== undefined, PATIENCE);
    const next = new WebdavProxy(join(fixture.folder, 'proxy'), () => undefined);
    await next.open();
    fixture.backend.before = () => false;
    await next.take(fixture.state);
    await inPlace(body);
    await next.take({ ...fixture.state, shares: [] });
    // The one that counts as killed would write its note once more, when the folder has gone.
    held?.writeHead(204).end();
    await until('the former one is done, too', () => /in place now/.test(fixture.said.join()), PATIENCE);
  });

  it('is not given up for the file that another place has there', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    fixture.backend.files.set(FILE, Buffer.from('of another NAS'));
    await attach('elsewhere');
    await kept();
    assert.deepEqual([file()?.toString(), (await notes()).length], ['of another NAS', 1]);
    assert.equal((await fixture.ask('PUT', FILE, { body: 'new there' })).status, 204);
    assert.equal((await notes()).length, 1, 'nor for what is saved there');
    await fixture.tell({ shares: [] });
    fixture.backend.files.delete(FILE);
    await attach();
    await inPlace(body);
  });

  it('is not given up for an empty file, as a lock makes it', async () => {
    const body = randomBytes(400_000);
    await fail(body);
    fixture.backend.files.set(FILE, Buffer.alloc(0));
    fixture.backend.times.set(FILE, Date.now() + 60_000);
    await attach();
    await kept();
    assert.deepEqual([file()?.length, (await notes()).length], [0, 1]);
    await fixture.tell({ shares: [] });
    fixture.backend.files.delete(FILE);
    await attach();
    await inPlace(body);
  });

  for (const deleted of [FILE, '/team/in'])
    it(`is kept, and put nowhere, once a client has deleted ${deleted}`, async () => {
      const body = randomBytes(400_000);
      onPut(refuse);
      assert.equal((await fixture.ask('PUT', FILE, { body })).status, 502);
      await fixture.ask('DELETE', deleted);
      fixture.backend.before = () => false;
      fixture.backend.files.set('/team/in', Buffer.from('a folder'));
      const puts = fixture.backend.count('PUT');
      await fixture.tell({ shares: [] });
      await attach();
      await kept();
      assert.deepEqual([file(), fixture.backend.count('PUT'), (await notes()).length], [undefined, puts, 1]);
    });

  it('of two that failed is the later one', async () => {
    onPut(refuse);
    await fixture.ask('PUT', FILE, { body: randomBytes(400_000) });
    await until('it was tried three times', () => fixture.backend.count('PUT') === 3, PATIENCE);
    fixture.backend.files.set(FILE, Buffer.from('over SMB'));
    const later = randomBytes(300_000);
    assert.equal((await fixture.ask('PUT', FILE, { body: later })).status, 502);
    await until('it was tried three times, too', () => fixture.backend.count('PUT') === 6, PATIENCE);
    await fixture.tell({ shares: [] });
    const contents = new Set<number | undefined>();
    fixture.backend.before = () => {
      contents.add(file()?.length);
      return false;
    };
    await attach();
    await inPlace(later);
    assert.deepEqual(
      [...contents].filter((size) => (size ?? 0) > 300_000),
      [],
    );
  });

  it('goes over nothing that others have saved while a torn one waited for its share', async () => {
    const body = randomBytes(400_000);
    onPut((request, response) => {
      fixture.backend.files.set(FILE, body.subarray(0, 100_000));
      request.resume();
      response.writeHead(500).end();
    });
    assert.equal((await fixture.ask('PUT', FILE, { body })).status, 502);
    await fixture.tell({ shares: [] });
    let looks = 0;
    fixture.backend.before = ({ method, url }) => {
      if (method === 'GET' && url === FILE && (looks += 1) === 1)
        void fixture.tell({ shares: [fixture.share('team', { readOnly: true, isFrozen: true })] });
      return false;
    };
    await attach();
    await until('it is under way', () => looks === 1, PATIENCE);
    fixture.backend.files.set(FILE, Buffer.from('theirs'));
    fixture.backend.times.set(FILE, Date.now() + 60_000);
    await attach();
    await until('no note and no body is left', async () => (await left()).length === 0, PATIENCE);
    assert.equal(file()?.toString(), 'theirs');
  });
});
