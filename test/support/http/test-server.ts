/** An HTTP server with ledgers by hand, and clients that speak to it over real sockets. */
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { ServerRoute } from '@hapi/hapi';
import pino from 'pino';
import { createHttp } from '../../../core/http/http.ts';
import type { Http, HttpOptions } from '../../../core/http/http.ts';
import { emptyLedger } from '../../../core/plugins/instance/ledger.ts';
import type { HapiEntry, Ledger } from '../../../core/plugins/instance/ledger.ts';
import { createClock } from '../../../core/platform/clock.ts';

export interface LedgerParts {
  readonly routes?: readonly ServerRoute[];
  readonly hapi?: readonly HapiEntry[];
  readonly guard?: boolean;
}

/** A plugin's ledger with routes and hapi plugins. */
export function ledger(plugin: string, parts: LedgerParts = {}): Ledger {
  return { ...emptyLedger(plugin, parts.guard ?? false), routes: parts.routes ?? [], hapi: parts.hapi ?? [] };
}

/** A route that answers `GET` with a text. */
export function textRoute(path: string, text: string): ServerRoute {
  return { method: 'GET', path, handler: () => text };
}

export interface TestServer {
  readonly http: Http;
  readonly logLines: Record<string, unknown>[];
  readonly inactive: Set<string>;
  readonly port: number;
  swap(...ledgers: readonly Ledger[]): Promise<void>;
}

/** Listens on a free loopback port; nothing is served until the first `swap`. */
export async function createServer(options: Partial<HttpOptions> = {}): Promise<TestServer> {
  const logLines: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'debug' },
    { write: (line: string) => void logLines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const inactive = new Set<string>();
  const http = createHttp({ clock: createClock(), log, hostnames: () => [], ...options });
  await http.listen({ host: '127.0.0.1', port: 0 });
  return {
    http,
    logLines,
    inactive,
    get port() {
      return http.address?.port ?? 0;
    },
    async swap(...ledgers) {
      (await http.projector.build(ledgers, (plugin) => !inactive.has(plugin))).commit();
    },
  };
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Ask {
  readonly port: number;
  readonly path?: string;
  readonly host?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly agent?: Agent;
}

/** One request. Rejects when the connection breaks, never for a status code. */
export function ask({
  port,
  path = '/',
  host = '127.0.0.1',
  method = 'GET',
  headers = {},
  body,
  agent,
}: Ask): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, path, method, headers, agent: agent ?? false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** A bare connection; `text()` is everything received so far. */
export interface Wire {
  readonly socket: Socket;
  readonly ended: Promise<void>;
  text(): string;
}

/** A plain TCP connection, for what no HTTP client would send. */
export async function dial(port: number, host = '127.0.0.1'): Promise<Wire> {
  const socket = connect({ port, host });
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  return { socket, ended, text: () => text };
}
