import { answer, xmlError } from '../answer.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';

const READING = 'OPTIONS, GET, HEAD, PROPFIND';

/** The list of shares: a read-only folder. */
export function serveRoot(
  request: IncomingMessage,
  response: ServerResponse,
  shares: readonly string[],
): void {
  const { method } = request;
  if (method === 'OPTIONS')
    return answer(request, response, {
      status: 200,
      text: '',
      headers: { allow: READING, dav: '1, 2', 'ms-author-via': 'DAV', 'content-length': 0 },
    });
  if (method === 'GET' || method === 'HEAD')
    return answer(request, response, {
      status: 200,
      text: page(shares),
      headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': 'sandbox' },
    });
  if (method !== 'PROPFIND')
    return answer(request, response, {
      status: 403,
      text: 'Only the shares stand here; nothing can be written beside them.',
    });
  const { depth } = request.headers;
  if (depth !== '0' && depth !== '1')
    return answer(request, response, { status: 403, text: xmlError('propfind-finite-depth') });
  answer(request, response, { status: 207, text: listing(depth === '1' ? shares : []) });
}

function listing(shares: readonly string[]): string {
  const entries = [
    entry('/', 'Mountkeeper'),
    ...shares.map((share) => entry(`/${encodeURIComponent(share)}/`, share)),
  ];
  return `<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">${entries.join('')}</D:multistatus>`;
}

function entry(path: string, name: string): string {
  const prop =
    `<D:displayname>${escape(name)}</D:displayname>` + '<D:resourcetype><D:collection/></D:resourcetype>';
  const propstat = `<D:prop>${prop}</D:prop><D:status>HTTP/1.1 200 OK</D:status>`;
  return `<D:response><D:href>${path}</D:href><D:propstat>${propstat}</D:propstat></D:response>`;
}

function page(shares: readonly string[]): string {
  const items = shares.map(
    (share) => `<li><a href="/${encodeURIComponent(share)}/">${escape(share)}</a></li>`,
  );
  return `<!doctype html><meta charset="utf-8"><title>Shares</title><h1>Shares</h1><ul>${items.join('')}</ul>`;
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
