import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { asksForAll, WithoutAbsent } from '../../../../../plugins/webdav/proxy/requests/all-properties.ts';
import { ProxyFixture } from '../../../../support/webdav/fake-backend.ts';

const HEAD = '<?xml version="1.0" encoding="UTF-8"?><D:multistatus xmlns:D="DAV:">';
const ABSENT =
  '<D:propstat><D:prop><D:getcontentlength></D:getcontentlength><D:getetag></D:getetag>' +
  '</D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>';
const entry = (name: string, rest = ''): string =>
  `<D:response><D:href>/team/${name}</D:href><D:propstat><D:prop><D:displayname>` +
  `${name}</D:displayname></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>` +
  `${rest}</D:response>`;
const NAMES = ['照片', 'HTTP/1.1 404 Not Found&lt;/D:status&gt;&lt;/D:propstat&gt;', 'a&amp;b'];
const answerOf = (absent: string): string =>
  `${HEAD}${entry('', absent)}${NAMES.map((name) => entry(name)).join('')}` +
  `${entry('sub/', absent)}${entry('last', absent)}</D:multistatus>`;

describe('a listing of a folder with all that is to be told', () => {
  /** What comes of it when it comes in pieces of so many bytes. */
  const passed = async (whole: Buffer, size: number): Promise<Buffer> => {
    const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
      whole.subarray(index * size, (index + 1) * size),
    );
    return Buffer.concat((await Readable.from(pieces).pipe(new WithoutAbsent()).toArray()) as Buffer[]);
  };

  it('tells what there is and nothing else, wherever it is cut into pieces', async () => {
    const whole = Buffer.from(answerOf(ABSENT));
    for (const size of [1, 2, 7, 64, 300, 1_000, whole.length])
      assert.equal((await passed(whole, size)).toString(), answerOf(''), `in pieces of ${size}`);
  });

  it('goes through as it is when it is written in another way', async () => {
    const other = Buffer.from('<a:response>x</a:response>'.repeat(20_000));
    for (const size of [4_096, 300_000]) assert.ok((await passed(other, size)).equals(other));
  });

  it('is wished for in these words, and no others', () => {
    const wishes = [
      '',
      '<propfind xmlns="DAV:"><allprop/></propfind>',
      '<?xml version="1.0" encoding="utf-8" ?>\r\n<D:propfind xmlns:D="DAV:">\n <D:allprop />\n</D:propfind>\n',
      "<a:propfind xmlns:a='DAV:'><a:allprop/></a:propfind>",
    ];
    const others = [
      '<propfind xmlns="DAV:"><propname/></propfind>',
      '<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>',
      '<propfind xmlns="DAV:"><allprop/><include><x xmlns="y"/></include></propfind>',
      '<propfind xmlns="other:"><allprop/></propfind>',
      '<D:propfind xmlns:D="DAV:"><E:allprop/></D:propfind>',
      '<propfind xmlns="DAV:"><allprop/>',
      'x',
      ' '.repeat(2_000),
    ];
    for (const wish of wishes) assert.equal(asksForAll(Buffer.from(wish)), true, wish);
    for (const other of others) assert.equal(asksForAll(Buffer.from(other)), false, other);
  });

  describe('and a property that a client sets, by the proxy', () => {
    let fixture: ProxyFixture;
    beforeEach(async () => (fixture = await ProxyFixture.open()));
    afterEach(() => fixture.close());

    it('is asked for by names, a single file and what a client names itself are not', async () => {
      const asked: string[] = [];
      fixture.backend.before = (request, response) => {
        let body = '';
        request
          .on('data', (piece: Buffer) => (body += piece.toString()))
          .once('end', () => {
            asked.push(body);
            const text = body.includes('getcontentlength') ? answerOf(ABSENT) : answerOf('');
            response
              .writeHead(207, { 'content-type': 'text/xml', 'content-length': Buffer.byteLength(text) })
              .end(text);
          });
        return true;
      };
      const ask = async (depth: string, body = ''): Promise<readonly [number, string]> => {
        const { status, text } = await fixture.ask('PROPFIND', '/team/', { headers: { depth }, body });
        return [status, text];
      };
      assert.deepEqual(await ask('1'), [207, answerOf('')]);
      assert.match(asked[0] ?? '', /<D:prop>.*<D:getetag\/>.*<D:lastmodified\/>/);
      await fixture.tell({
        shares: [
          fixture.share('team', {
            backend: { instance: 'older', port: fixture.backend.port, takesProperties: false },
          }),
        ],
      });
      assert.deepEqual(await ask('1', '<propfind xmlns="DAV:"><allprop/></propfind>'), [207, answerOf('')]);
      assert.doesNotMatch(asked[1] ?? '', /:lastmodified/);
      const named = '<propfind xmlns="DAV:"><prop><getcontentlength/></prop></propfind>';
      assert.deepEqual(await ask('1', named), [207, answerOf(ABSENT)]);
      await ask('0');
      assert.deepEqual(asked.slice(2), [named, '']);
    });

    it('answers a set property as newer backends do where the backend refuses it', async () => {
      await fixture.tell({
        shares: [
          fixture.share('team', {
            backend: { instance: 'old', port: fixture.backend.port, takesProperties: false },
          }),
        ],
      });
      fixture.backend.before = ({ method }, response) =>
        method === 'PROPPATCH' &&
        Boolean(response.writeHead(207).end('<?xml version="1.0"?><x>HTTP/1.1 403 Forbidden</x>'));
      const { status, text } = await fixture.ask('PROPPATCH', '/team/a', { body: '<x/>' });
      assert.deepEqual([status, text.trim()], [207, '<?xml version="1.0"?><x>HTTP/1.1 200 OK</x>']);
    });
  });
});
