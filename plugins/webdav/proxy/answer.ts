import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
}

/**
 * Sends a complete answer as plain text or XML. A client may still be sending an unwanted body: the
 * connection pool handles that.
 */
export function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, text, headers = {} }: Refusal,
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const isUnread = hasBody(request) && !request.complete;
  const body = text === '' ? '' : `${text}\n`;
  response.writeHead(status, {
    ...(status === 204 ? {} : bodyHeaders(body)),
    ...headers,
    ...(isUnread ? { connection: 'close' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function bodyHeaders(body: string): OutgoingHttpHeaders {
  return {
    'content-type': body.startsWith('<?xml') ? 'application/xml; charset=utf-8' : 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  };
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

export function xmlError(condition: string): string {
  return `<?xml version="1.0" encoding="utf-8"?><D:error xmlns:D="DAV:"><D:${condition}/></D:error>`;
}
