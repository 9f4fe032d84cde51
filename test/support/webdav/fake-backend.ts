/** A proxy between a client and a backend that keeps files in memory, both on loopback. */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebdavProxy } from '../../../plugins/webdav/proxy/proxy.ts';
import type { ProxyShare, ProxyState } from '../../../plugins/webdav/proxy/state.ts';

/** So much of a body, or all of it, has come before an upload is begun in the backend. */
export const FIRST_BYTES = 131_073;

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** A WebDAV server that keeps files in memory. */
export class FakeBackend {
  readonly files = new Map<string, Buffer>();
  /** When files were written last, in milliseconds; not there: just now. */
  readonly times = new Map<string, number>();
  /** Method and path of all that came, with the headers. */
  readonly seen: {
    readonly method: string;
    readonly path: string;
    readonly headers: IncomingMessage['headers'];
  }[] = [];
  /** Answers in place of the backend; false: the backend answers itself. */
  before: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly server: Server = createServer((request, response) => void this.#serve(request, response)).on(
    'checkContinue',
    (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response),
  );

  /** The port it listens on. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** How many requests of a method came. */
  count(method: string): number {
    return this.seen.filter((one) => one.method === method).length;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '' } = request;
    this.seen.push({ method, path, headers: request.headers });
    if (this.before(request, response)) return;
    if (method === 'PUT') return this.#put(request, response, path);
    const status = this.#change(request);
    if (status !== undefined) return void response.writeHead(status).end();
    const file = this.files.get(path);
    if (!file) return void response.writeHead(404).end();
    if (method === 'PROPFIND') {
      response
        .writeHead(207)
        .end(
          '<D:multistatus xmlns:D="DAV:"><D:getcontentlength>' +
            `${file.length}</D:getcontentlength><D:getetag>"e${file.length}"</D:getetag>` +
            `<D:getlastmodified>${new Date(this.times.get(path) ?? Date.now()).toUTCString()}` +
            '</D:getlastmodified></D:multistatus>',
        );
      return;
    }
    response.writeHead(200, { 'content-length': file.length, server: 'backend' }).end(file);
  }

  #change(request: IncomingMessage): number | undefined {
    if (request.method === 'MOVE' || request.method === 'COPY') return this.#replicate(request);
    if (request.method === 'DELETE') return this.files.delete(request.url ?? '') ? 204 : 404;
    return undefined;
  }

  /** As the real ones: what is in the way is taken away first. */
  #replicate({ method, url: path = '', headers }: IncomingMessage): number {
    if (headers.depth === '1') return 400;
    const target = new URL(headers['destination'] as string).pathname;
    const file = this.files.get(path);
    if (!file && method === 'COPY') return 404;
    if (this.files.has(target) && headers['overwrite'] !== 'T') return 412;
    const status = this.files.delete(target) ? 204 : 201;
    if (!file) return 403;
    this.files.set(target, file);
    if (method === 'MOVE') this.files.delete(path);
    return status;
  }

  /** As the real ones: the file is cut first, and what has come stays when the writer goes away, with its time. */
  async #put(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const pieces: Buffer[] = [];
    if (request.headers.expect !== undefined) response.writeContinue();
    this.files.set(path, Buffer.alloc(0));
    const wantedMs = Number(request.headers['x-oc-mtime'] ?? NaN) * 1_000;
    if (Number.isNaN(wantedMs)) this.times.delete(path);
    else this.times.set(path, wantedMs);
    try {
      for await (const piece of request) {
        pieces.push(piece as Buffer);
        this.files.set(path, Buffer.concat(pieces));
      }
      response.writeHead(201).end('Created');
    } catch {
      response.destroy();
    }
  }
}

/** The proxy before one fake backend, with a share and a user. */
export class ProxyFixture {
  readonly backend = new FakeBackend();
  readonly folder: string;
  readonly proxy: WebdavProxy;
  /** What the proxy has logged. */
  readonly said: string[] = [];
  readonly #server: Server;
  state: ProxyState;

  private constructor(folder: string, isSecure: boolean) {
    this.folder = folder;
    this.proxy = new WebdavProxy(join(folder, 'proxy'), (sentence) => this.said.push(sentence));
    this.#server = this.proxy.createServer({
      limits: { maxConnections: 2_000, maxPerAddress: 500 },
      isSecure,
    });
    this.state = {
      users: [{ name: 'alice', password: 'wonder:land' }],
      isOpen: false,
      hostnames: [],
      trustedProxies: [],
      spool: join(folder, 'spool'),
      minFreeBytes: 0,
      shares: [],
      access: {},
      returning: [],
      mark: '',
    };
  }

  /** Starts both on free ports. */
  static async open({ isSecure = false } = {}): Promise<ProxyFixture> {
    const fixture = new ProxyFixture(await mkdtemp(join(tmpdir(), 'mk-proxy-')), isSecure);
    await fixture.proxy.open();
    for (const server of [fixture.backend.server, fixture.#server])
      await once(server.listen(0, '127.0.0.1'), 'listening');
    await fixture.tell({ shares: [fixture.share('team')] });
    return fixture;
  }

  /** A share as the proxy is told of it. */
  share(name: string, changes: Partial<ProxyShare> = {}): ProxyShare {
    return {
      name,
      path: `/mnt/${name}`,
      readOnly: false,
      backend: { instance: 'first', port: this.backend.port, takesProperties: true },
      place: 'here',
      ...changes,
    };
  }

  /** Gives the proxy a new state. */
  async tell(changes: Partial<ProxyState>): Promise<void> {
    this.state = { ...this.state, ...changes };
    await this.proxy.take(this.state);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that the proxy has from clients. */
  clients(): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  }

  /** As alice, who is in. */
  async ask(
    method: string,
    path: string,
    options: { readonly headers?: OutgoingHttpHeaders; readonly body?: Buffer | string } = {},
  ): Promise<Reply> {
    const request = httpRequest({
      host: '127.0.0.1',
      port: this.port,
      method,
      path,
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), ...options.headers },
    });
    request.end(options.body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of response) text += (piece as Buffer).toString('utf8');
    return { status: response.statusCode ?? 0, headers: response.headers, text };
  }

  /** Ends both and removes their folder. */
  async close(): Promise<void> {
    for (const server of [this.#server, this.backend.server]) {
      server.closeAllConnections();
      server.close();
    }
    await this.tell({ shares: [] });
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The value of an Authorization header. */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
