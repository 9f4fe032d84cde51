import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { preconditionFails } from '../../../../../plugins/webdav/proxy/requests/conditions.ts';
import { isTornBy } from '../../../../../plugins/webdav/proxy/writes/torn.ts';
import { toClient, toBackend } from '../../../../../plugins/webdav/proxy/requests/headers.ts';
import type { LeftUpload } from '../../../../../plugins/webdav/proxy/writes/journal.ts';
import {
  formatPath,
  hasTrailingSlash,
  parseDestination,
  parsePath,
} from '../../../../../plugins/webdav/proxy/requests/path.ts';
import { parseFound } from '../../../../../plugins/webdav/proxy/requests/stat.ts';

describe('a path that a WebDAV client asks for', () => {
  it('is taken apart and put together again', () => {
    assert.deepEqual(parsePath('/'), { share: undefined, parts: [] });
    assert.deepEqual(parsePath('/%E7%85%A7%E7%89%87%20Photos/a%20b/c%25d?x=1'), {
      share: '照片 Photos',
      parts: ['a b', 'c%d'],
    });
    assert.deepEqual(parsePath('http://nas:8091/team/x'), { share: 'team', parts: ['x'] });
    assert.deepEqual(parsePath('//team///x/'), { share: 'team', parts: ['x'] });
    assert.equal(
      formatPath({ share: '照片 Photos', parts: ['a b', 'c%d', '#?'] }),
      '/%E7%85%A7%E7%89%87%20Photos/a%20b/c%25d/%23%3F',
    );
    // As Go spells paths: with another spelling rclone does not see its own prefix.
    assert.equal(
      formatPath({ share: 'R&D', parts: ['a+b=c;d,e@f:$1', "it's (new)!*", '%26'] }),
      '/R&D/a+b=c;d,e@f:$1/it%27s%20%28new%29%21%2A/%2526',
    );
    assert.equal(hasTrailingSlash('/team/x/?a=b'), true);
  });

  it('is spelled for backends as they would spell it themselves', () => {
    const name = '! "#$%&\'()*+,-.:;<=>?@[\\]^_`{|}~';
    const spelled = formatPath({ share: '照', parts: [name] });
    assert.equal(
      spelled,
      '/%E7%85%A7/%21%20%22%23$%25&%27%28%29%2A+,-.:;%3C=%3E%3F@%5B%5C%5D%5E_%60%7B%7C%7D~',
    );
    assert.deepEqual(parsePath(spelled), { share: '照', parts: [name] });
  });

  it('finds a share by either spelling of its letters', () => {
    assert.deepEqual(parsePath('/Fo%CC%88tos/x'), { share: 'Fötos', parts: ['x'] });
  });

  it('is refused when it could lead out of its share', () => {
    for (const path of [
      '/team/../etc',
      '/team/%2e%2e/etc',
      '/team/%2E%2e/',
      '/../team',
      '/team/./x',
      '/team/a%2Fb',
      '/team/a%00b',
      '/team/%zz',
      '/team/%ff',
      'team/x',
      `/team/${'x'.repeat(9_000)}`,
    ]) {
      assert.equal(parsePath(path), undefined, path);
    }
  });

  it('leads a copy only to the server that was asked', () => {
    assert.deepEqual(parseDestination('http://nas:8091/team/new', 'nas:8091'), {
      share: 'team',
      parts: ['new'],
    });
    assert.deepEqual(parseDestination('https://NAS/team/new', 'nas'), { share: 'team', parts: ['new'] });
    assert.deepEqual(parseDestination('/team/new', 'nas'), { share: 'team', parts: ['new'] });
    assert.equal(parseDestination('http://other/team/new', 'nas'), 'elsewhere');
    assert.equal(parseDestination('http://nas/team/%2e%2e/new', 'nas'), undefined);
    assert.equal(parseDestination(undefined, 'nas'), undefined);
  });
});

describe('headers between WebDAV clients and backends', () => {
  it('reach the backend only where they mean something to it', () => {
    const passed = toBackend({
      host: 'nas',
      authorization: 'Basic x',
      cookie: 'a',
      'x-forwarded-for': '1.2.3.4',
      depth: '1',
      'oc-mtime': '1600000000',
      connection: 'keep-alive',
      expect: '100-continue',
    });
    assert.deepEqual(passed, { host: 'nas', depth: '1', 'x-oc-mtime': '1600000000' });
  });

  it('keep pages that lie in a share from acting', () => {
    const passed = toClient({ 'content-type': 'text/html', server: 'rclone', connection: 'close' }, 'GET');
    assert.deepEqual(passed, {
      'content-type': 'text/html',
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    });
  });
});

describe('what lies at a path', () => {
  const xml = (inner: string): string =>
    `<D:multistatus xmlns:D="DAV:"><D:response><D:propstat><D:prop>${inner}</D:prop>` +
    '</D:propstat></D:response></D:multistatus>';
  const found = parseFound(
    xml(
      '<D:getcontentlength>12</D:getcontentlength><D:getetag>&#34;abc&#34;</D:getetag>' +
        '<D:resourcetype></D:resourcetype><D:getlastmodified>Sat, ' +
        '21 Nov 2026 08:53:27 GMT</D:getlastmodified>',
    ),
  );

  it("is read from the backend's answer", () => {
    assert.deepEqual(found, {
      isFolder: false,
      bytes: 12,
      etag: '"abc"',
      modifiedMs: Date.UTC(2026, 10, 21, 8, 53, 27),
    });
    assert.equal(
      parseFound(xml('<D:resourcetype><D:collection xmlns:D="DAV:"/></D:resourcetype>')).isFolder,
      true,
    );
  });

  it('meets the conditions of an upload, or does not', () => {
    assert.equal(preconditionFails({ 'if-match': '"abc"' }, found), false);
    assert.equal(preconditionFails({ 'if-match': '"x", W/"abc"' }, found), false);
    assert.equal(preconditionFails({ 'if-match': '"x"' }, found), true);
    assert.equal(preconditionFails({ 'if-match': '*' }, undefined), true);
    assert.equal(preconditionFails({ 'if-none-match': '*' }, found), true);
    assert.equal(preconditionFails({ 'if-none-match': '*' }, undefined), false);
    assert.equal(preconditionFails({ 'if-unmodified-since': 'Sat, 21 Nov 2026 08:00:00 GMT' }, found), true);
    assert.equal(preconditionFails({ 'if-unmodified-since': 'Sat, 21 Nov 2026 09:00:00 GMT' }, found), false);
  });

  it('is taken for torn only when the upload was the last that wrote it', () => {
    const upload: LeftUpload = {
      id: '1',
      kind: 'new',
      share: 'team',
      parts: ['a'],
      begunMs: 1_000_000,
      seenMs: 1_060_000,
      headers: {},
    };
    const isTorn = (one: LeftUpload, modifiedMs: number, isFolder = false): boolean =>
      isTornBy(one, { isFolder, modifiedMs, bytes: 10 });
    assert.equal(isTorn(upload, 1_030_000), true);
    assert.equal(isTorn(upload, 900_000), false);
    assert.equal(isTorn(upload, 1_200_000), false);
    assert.equal(isTorn(upload, 1_030_000, true), false);
    // By the time that its client wants, as long as there is no more of it than has been sent.
    const dated = { ...upload, headers: { 'x-oc-mtime': '500' } };
    const passed = (passedBytes: number): boolean => isTorn({ ...dated, passedBytes }, 500_000);
    assert.deepEqual([passed(11), passed(10), passed(9)], [true, true, false]);
    assert.equal(isTorn(dated, 500_000), false);
    // Its body tells how long it may be, and what is in it.
    assert.equal(isTorn({ ...dated, kind: 'whole' }, 500_000), true);
  });
});
