/**
 * What desktops send when a user saves, renames and deletes a file, request by request as their makers
 * document it.
 */
import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { once } from 'node:events';

export interface Desktop {
  readonly port: number;
  readonly share: string;
  /** `name:password` */
  readonly login: string;
  /** Over TLS, with this authority trusted. */
  readonly ca?: Buffer;
}

interface Step {
  readonly status: readonly number[];
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer | string;
  /** Without a length, as it comes. */
  readonly isChunked?: boolean;
}

interface Reply {
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

const LOCK =
  '<?xml version="1.0" encoding="utf-8"?><D:lockinfo xmlns:D="DAV:"><D:lockscope>' +
  '<D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>' +
  '<D:href>DESK\\alice</D:href></D:owner></D:lockinfo>';
const WIN32_TIMES = ['CreationTime', 'LastAccessTime', 'LastModifiedTime']
  .map((name) => `<Z:Win32${name}>Thu, 13 Jul 2017 12:00:00 GMT</Z:Win32${name}>`)
  .join('');
const WIN32 =
  '<?xml version="1.0" encoding="utf-8" ?><D:propertyupdate xmlns:D="DAV:" ' +
  'xmlns:Z="urn:schemas-microsoft-com:"><D:set><D:prop>' +
  `${WIN32_TIMES}<Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop>` +
  '</D:set></D:propertyupdate>';
const FINDER_ASKS =
  '<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>' +
  '<D:getlastmodified/><D:getcontentlength/><D:creationdate/><D:resourcetype/></D:prop>' +
  '</D:propfind>';

/** One connection of a desktop. */
class Session {
  readonly #agent: Agent;
  readonly #desktop: Desktop;
  readonly #always: OutgoingHttpHeaders;

  constructor(desktop: Desktop, always: OutgoingHttpHeaders) {
    this.#desktop = desktop;
    const one = { keepAlive: true, maxSockets: 1 };
    this.#agent = desktop.ca ? new SecureAgent({ ...one, ca: desktop.ca }) : new Agent(one);
    this.#always = { authorization: `Basic ${Buffer.from(desktop.login).toString('base64')}`, ...always };
  }

  url(path: string): string {
    return `${this.#desktop.ca ? 'https' : 'http'}://127.0.0.1:${this.#desktop.port}${this.path(path)}`;
  }

  path(path: string): string {
    return `/${[this.#desktop.share, ...path.split('/')].map(encodeURIComponent).join('/')}`;
  }

  async send(
    method: string,
    path: string,
    { status, headers, body = '', isChunked = false }: Step,
  ): Promise<Reply> {
    const length = isChunked
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': Buffer.byteLength(body) };
    const ask = this.#desktop.ca ? httpsRequest : httpRequest;
    const request = ask({
      host: '127.0.0.1',
      port: this.#desktop.port,
      method,
      path: this.path(path),
      agent: this.#agent,
      headers: { ...this.#always, ...length, ...headers },
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of response) text += (piece as Buffer).toString('utf8');
    assert.ok(status.includes(response.statusCode ?? 0), `${method} ${path}: ${response.statusCode} ${text}`);
    return { headers: response.headers, text };
  }

  async lock(path: string, timeout: string): Promise<string> {
    const { headers } = await this.send('LOCK', path, {
      status: [200],
      headers: { depth: '0', timeout, 'content-type': 'text/xml' },
      body: LOCK,
    });
    return /<(.+)>/.exec(String(headers['lock-token']))?.[1] ?? assert.fail('no lock token');
  }

  close(): void {
    this.#agent.destroy();
  }
}

const sizeIn = ({ text }: Reply): number => Number(/getcontentlength[^>]*>(\d+)</.exec(text)?.[1]);

/**
 * Explorer (the WebDAV redirector of Windows) makes a new file, fills it, sets its times, and gives it
 * another name.
 */
export async function saveAsExplorer(
  desktop: Desktop,
  { name, body, renamed }: { readonly name: string; readonly body: Buffer; readonly renamed: string },
): Promise<void> {
  const explorer = new Session(desktop, {
    'user-agent': 'Microsoft-WebDAV-MiniRedir/10.0.19045',
    translate: 'f',
    connection: 'Keep-Alive',
  });
  try {
    const { headers } = await explorer.send('OPTIONS', '', {
      status: [200],
      headers: { authorization: undefined, ...basicOf(desktop) },
    });
    assert.deepEqual([headers['dav'], headers['ms-author-via']], ['1, 2', 'DAV']);
    for (const depth of ['0', '1'])
      await explorer.send('PROPFIND', '', { status: [207], headers: { depth } });
    await explorer.send('PROPFIND', name, { status: [404], headers: { depth: '0' } });
    await explorer.send('PUT', name, { status: [201] });
    const token = await explorer.lock(name, 'Second-3600');
    const held = { if: `(<${token}>)` };
    const set = async (): Promise<void> =>
      assert.doesNotMatch(
        (
          await explorer.send('PROPPATCH', name, {
            status: [207],
            headers: { ...held, 'content-type': 'text/xml; charset="utf-8"' },
            body: WIN32,
          })
        ).text,
        /HTTP\/1\.1 [45]/,
      );
    await set();
    await explorer.send('HEAD', name, { status: [200] });
    await explorer.send('PUT', name, { status: [423], body: 'another one' });
    await explorer.send('PUT', name, { status: [200, 201, 204], headers: held, body });
    await set();
    await explorer.send('LOCK', name, { status: [200], headers: { ...held, timeout: 'Second-3600' } });
    await explorer.send('UNLOCK', name, { status: [204], headers: { 'lock-token': `<${token}>` } });
    assert.equal(
      sizeIn(await explorer.send('PROPFIND', name, { status: [207], headers: { depth: '0' } })),
      body.length,
    );
    await explorer.send('MOVE', name, {
      status: [201],
      headers: { destination: explorer.url(renamed), overwrite: 'F' },
    });
  } finally {
    explorer.close();
  }
}

function basicOf({ login }: Desktop): OutgoingHttpHeaders {
  return { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
}

/**
 * Finder copies a file in, with the companion that holds what the file system cannot, and takes that away
 * again.
 */
export async function copyAsFinder(
  desktop: Desktop,
  { name, body }: { readonly name: string; readonly body: Buffer },
): Promise<void> {
  const finder = new Session(desktop, {
    'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/22.6.0 (x86_64)',
    accept: '*/*',
  });
  const companion = `._${name}`;
  const write = async (path: string, content: Buffer): Promise<void> => {
    await finder.send('PUT', path, { status: [201] });
    const token = await finder.lock(path, 'Second-600');
    await finder.send('PROPFIND', path, {
      status: [207],
      headers: { depth: '0', 'content-type': 'text/xml' },
      body: FINDER_ASKS,
    });
    const headers = { if: `(<${token}>)`, 'x-expected-entity-length': content.length };
    await finder.send('PUT', path, { status: [200, 201, 204], headers, body: content, isChunked: true });
    await finder.send('LOCK', path, {
      status: [200],
      headers: { if: `(<${token}>)`, timeout: 'Second-600' },
    });
    await finder.send('UNLOCK', path, { status: [204], headers: { 'lock-token': `<${token}>` } });
  };
  try {
    assert.equal((await finder.send('OPTIONS', '', { status: [200] })).headers['dav'], '1, 2');
    await finder.send('PROPFIND', '', {
      status: [207],
      headers: { depth: '1', 'content-type': 'text/xml' },
      body: FINDER_ASKS,
    });
    for (const missing of ['._.', '.DS_Store', '.metadata_never_index', name])
      await finder.send('PROPFIND', missing, {
        status: [404],
        headers: { depth: '0', 'content-type': 'text/xml' },
        body: FINDER_ASKS,
      });
    await write(name, body);
    await write(companion, Buffer.alloc(4_096, 5));
    assert.equal(
      sizeIn(
        await finder.send('PROPFIND', name, {
          status: [207],
          headers: { depth: '0', 'content-type': 'text/xml' },
          body: FINDER_ASKS,
        }),
      ),
      body.length,
    );
    await finder.send('GET', name, { status: [206], headers: { range: 'bytes=0-9' } });
    await finder.send('DELETE', companion, { status: [204] });
  } finally {
    finder.close();
  }
}
