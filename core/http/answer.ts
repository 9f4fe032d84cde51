/** Answers that the core gives itself, without any route, and the headers of every answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';

// Not imported, which costs a start much: see docs/contributing.md.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

const HSTS_SECONDS = 365 * 86_400;

/** Set before a route sees the request; a route may replace them. */
export function addSecurityHeaders(res: ServerResponse, hsts: boolean): void {
  res.setHeader('x-content-type-options', 'nosniff');
  res.setHeader('x-frame-options', 'DENY');
  res.setHeader('content-security-policy', "frame-ancestors 'none'");
  // With `no-referrer`, browsers would send the forms of our own pages with `Origin: null`, as other sites do.
  res.setHeader('referrer-policy', 'same-origin');
  if (hsts) res.setHeader('strict-transport-security', `max-age=${HSTS_SECONDS}`);
}

/** An error sentence as JSON, in the same form as every other error answer. */
export function answerProblem(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  message: string,
): void {
  const body = JSON.stringify({ statusCode: status, error: STATUS_CODES[status], message });
  if (status === 503) res.setHeader('retry-after', '1');
  finish(req, res, status, { type: 'application/json; charset=utf-8', body });
}

export function answerHealth(req: IncomingMessage, res: ServerResponse): void {
  finish(req, res, 200, { type: 'text/plain; charset=utf-8', body: 'ok' });
}

function finish(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  content: { type: string; body: string },
): void {
  // An unread body would be taken for the connection's next request.
  if (!req.complete && mayHaveBody(req)) res.setHeader('connection', 'close');
  res.setHeader('cache-control', 'no-store');
  res.setHeader('content-type', content.type);
  res.setHeader('content-length', Buffer.byteLength(content.body));
  res.statusCode = status;
  res.end(req.method === 'HEAD' ? undefined : content.body);
}

function mayHaveBody(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined || (req.headers['content-length'] ?? '0') !== '0';
}
