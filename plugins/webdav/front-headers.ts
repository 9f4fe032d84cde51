import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

/** Headers of clients that mean something to an engine; nothing else gets through. */
const REQUEST = [
  'accept', 'content-type', 'depth', 'host', 'if', 'if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since',
  'lock-token', 'overwrite', 'range', 'timeout', 'x-oc-mtime',
] as const;
/** Between two neighbours only, or none of the clients' business. */
const ANSWER_DROPPED = new Set(['connection', 'keep-alive', 'transfer-encoding', 'server', 'trailer', 'upgrade', 'www-authenticate', 'proxy-authenticate', 'set-cookie']);

export function toEngine(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(REQUEST.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
  // The older spelling of the same wish.
  if (headers['oc-mtime'] !== undefined) passed['x-oc-mtime'] = headers['oc-mtime'];
  return passed;
}

/** Pages that lie in a share must not act in the name of whoever looks at them. */
export function toClient(headers: IncomingHttpHeaders, method: string): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(Object.entries(headers).filter(([name]) => !ANSWER_DROPPED.has(name)));
  return method === 'GET' || method === 'HEAD' ? { ...passed, 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' } : passed;
}
