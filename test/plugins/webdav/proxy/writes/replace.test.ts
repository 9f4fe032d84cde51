import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const OLD = Buffer.from('the old content');

describe('copies and moves over a file, in the proxy of WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  const over = (method: string, headers: Record<string, string> = {}) =>
    fixture.ask(method, '/team/new', { headers: { destination: '/team/kept', ...headers } });
  const written = (path: string): string | undefined => fixture.backend.files.get(path)?.toString();

  for (const size of [10, 400_000]) {
    it(`has the old content of a file there until the new one of ${size} bytes is`, async () => {
      const content = randomBytes(size);
      for (const method of ['COPY', 'MOVE']) {
        fixture.backend.files.set('/team/new', content).set('/team/kept', OLD);
        const seen: (Buffer | undefined)[] = [];
        fixture.backend.before = () => {
          seen.push(fixture.backend.files.get('/team/kept'));
          return false;
        };
        assert.equal((await over(method)).status, 204);
        assert.ok(
          seen.every((one) => one?.equals(OLD) === true || one?.equals(content) === true),
          method,
        );
        assert.ok(fixture.backend.files.get('/team/kept')?.equals(content));
        assert.equal(fixture.backend.files.has('/team/new'), method === 'COPY');
      }
      assert.deepEqual(
        [...(await readdir(join(fixture.folder, 'proxy/journal'))), ...(await readdir(fixture.state.spool))],
        [],
      );
    });
  }

  it('replaces the old one again when the backend dies in the middle, then removes the source', async () => {
    const content = randomBytes(400_000);
    fixture.backend.files.set('/team/new', content).set('/team/kept', OLD);
    let deaths = 0;
    fixture.backend.before = (request, response) => {
      if (request.method !== 'PUT' || deaths > 0) return false;
      deaths += 1;
      fixture.backend.files.set('/team/kept', Buffer.from('torn'));
      assert.ok(fixture.backend.files.has('/team/new'));
      response.writeContinue();
      request.once('data', () => request.destroy());
      return true;
    };
    assert.equal((await over('MOVE')).status, 204);
    assert.deepEqual(
      [
        deaths,
        fixture.backend.files.get('/team/kept')?.equals(content),
        fixture.backend.files.has('/team/new'),
      ],
      [1, true, false],
    );
  });

  it('keeps the file when there is nothing to put in its place', async () => {
    fixture.backend.files.set('/team/kept', OLD);
    for (const method of ['COPY', 'MOVE']) {
      assert.equal((await over(method)).status, 404);
      assert.equal(written('/team/kept'), OLD.toString(), method);
    }
    fixture.backend.files.set('/team/new', Buffer.from('new'));
    assert.deepEqual([(await over('MOVE')).status, (await over('MOVE')).status], [204, 404]);
    assert.equal(written('/team/kept'), 'new');
  });

  it('changes nothing when the source cannot be read to its end', async () => {
    fixture.backend.files.set('/team/new', randomBytes(400_000)).set('/team/kept', OLD);
    fixture.backend.before = ({ method }, response) => {
      if (method !== 'GET') return false;
      response
        .writeHead(200, { 'content-length': 400_000 })
        .write(randomBytes(100_000), () => response.destroy());
      return true;
    };
    assert.equal((await over('MOVE')).status, 502);
    assert.deepEqual(
      [written('/team/kept'), fixture.backend.files.has('/team/new'), fixture.backend.count('PUT')],
      [OLD.toString(), true, 0],
    );
  });

  it('hears of locks and conditions first', async () => {
    fixture.backend.files.set('/team/new', Buffer.from('new')).set('/team/kept', OLD);
    for (const status of [423, 412]) {
      fixture.backend.before = ({ method }, response) =>
        method === 'MOVE' && Boolean(response.writeHead(status).end());
      assert.equal((await over('MOVE', { if: '(<urn:x>)' })).status, status);
    }
    assert.deepEqual([written('/team/kept'), written('/team/new')], [OLD.toString(), 'new']);
  });

  it("shows the client's lock tokens where there is a lock, and only there", async () => {
    fixture.backend.files.set('/team/new', Buffer.from('new')).set('/team/kept', OLD);
    fixture.backend.before = ({ method, headers }, response) =>
      method === 'COPY' &&
      headers['destination'] === 'http://nas/team/kept' &&
      Boolean(response.writeHead(423).end());
    assert.equal(
      (await over('MOVE', { host: 'nas', if: '</team/new> (<urn:one>) </team/kept> (<urn:two> ["e"])' }))
        .status,
      204,
    );
    const sent = (method: string) => fixture.backend.seen.find((one) => one.method === method)?.headers.if;
    assert.deepEqual([sent('PUT'), sent('DELETE')], ['(<urn:one>) (<urn:two>)', undefined]);
  });

  it('leaves a source that was written meanwhile', async () => {
    fixture.backend.files.set('/team/new', Buffer.from('new')).set('/team/kept', OLD);
    fixture.backend.before = ({ method }) => {
      if (method === 'PUT') fixture.backend.files.set('/team/new', Buffer.from('newer'));
      return false;
    };
    assert.equal((await over('MOVE')).status, 409);
    assert.deepEqual([written('/team/kept'), written('/team/new')], ['new', 'newer']);
  });

  it('does not take a file away that is asked to take its own place in another spelling', async () => {
    fixture.backend.files.set('/team/%C3%A9', OLD).set('/team/e%CC%81', OLD);
    assert.equal(
      (await fixture.ask('MOVE', '/team/%C3%A9', { headers: { destination: '/team/e%CC%81' } })).status,
      403,
    );
    assert.equal(fixture.backend.count('MOVE') + fixture.backend.count('DELETE'), 0);
  });

  it('overwrites when a client says nothing, and not when it says no', async () => {
    fixture.backend.files.set('/team/new', Buffer.from('new')).set('/team/kept', OLD);
    assert.equal((await over('MOVE', { overwrite: 'F' })).status, 412);
    assert.equal(written('/team/kept'), OLD.toString());
    fixture.backend.files.set('/team/kept', Buffer.alloc(0));
    assert.equal((await over('MOVE')).status, 204);
    assert.equal(written('/team/kept'), 'new');
  });

  it("tells the backend a file's time in whole seconds, and confirms no other", async () => {
    const put = (time: string, header = 'x-oc-mtime') =>
      fixture.ask('PUT', '/team/timed', { body: 'x', headers: { [header]: time } });
    const told = (): unknown =>
      fixture.backend.seen.findLast(({ method }) => method === 'PUT')?.headers['x-oc-mtime'];
    for (const [time, header] of [
      ['1600000000', 'x-oc-mtime'],
      ['1600000000.25', 'x-oc-mtime'],
      ['1600000000', 'oc-mtime'],
    ] as const) {
      const { status, headers } = await put(time, header);
      assert.deepEqual([status < 300, headers['x-oc-mtime'], told()], [true, 'accepted', '1600000000'], time);
    }
    assert.equal((await put('now --help')).headers['x-oc-mtime'], undefined);
    assert.equal(told(), undefined);
  });
});
