import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { after } from './front-clock.ts';

/** How long a client that is refused may go on sending before it is cut off. */
const LINGER_MS = 3_000;

export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
}

/**
 * A whole answer in plain words, or XML. A body that nobody wants is let come for a while: cut off at once, many clients would
 * never read the answer.
 */
export function answer(request: IncomingMessage, response: ServerResponse, { status, text, headers = {} }: Refusal): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const isUnread = hasBody(request) && !request.complete;
  const body = text === '' ? '' : `${text}\n`;
  response.writeHead(status, { ...(status === 204 ? {} : bodyHeaders(body)), ...headers, ...(isUnread ? { connection: 'close' } : {}) });
  if (isUnread) return linger(request, response, body);
  response.end(request.method === 'HEAD' ? undefined : body);
}

function bodyHeaders(body: string): OutgoingHttpHeaders {
  return { 'content-type': body.startsWith('<?xml') ? 'application/xml; charset=utf-8' : 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) };
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function linger(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (request.method !== 'HEAD' && body !== '') response.write(body);
  const end = (): void => {
    cancel();
    response.end();
  };
  const cancel = after(LINGER_MS, end);
  request.once('end', end).once('close', end).resume();
}

export function xmlError(condition: string): string {
  return `<?xml version="1.0" encoding="utf-8"?><D:error xmlns:D="DAV:"><D:${condition}/></D:error>`;
}
