import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

/** Headers of clients that mean something to an backend; nothing else gets through. */
const REQUEST = [
  'accept',
  'content-type',
  'depth',
  'host',
  'if',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'lock-token',
  'overwrite',
  'range',
  'timeout',
  'x-oc-mtime',
] as const;
/** Between two neighbours only, or none of the clients' business. */
const ANSWER_DROPPED = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'server',
  'trailer',
  'upgrade',
  'www-authenticate',
  'proxy-authenticate',
  'set-cookie',
]);

/** Clients that live renew theirs. */
const LONGEST_LOCK_S = 3_600;

export function toBackend(headers: IncomingHttpHeaders, isLock = false): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(
    REQUEST.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
  // A lock without an end would outlive a client that crashes: nobody could write the file until the share is
  // mounted anew.
  if (isLock) passed['timeout'] = `Second-${lockSeconds(headers['timeout'])}`;
  // The older spelling of the same wish.
  if (headers['oc-mtime'] !== undefined) passed['x-oc-mtime'] = headers['oc-mtime'];
  return passed;
}

function lockSeconds(timeout: string | string[] | undefined): number {
  const wished = [...String(timeout ?? '').matchAll(/Second-(\d+)/gi)].map(([, seconds]) => Number(seconds));
  return Math.min(wished[0] ?? LONGEST_LOCK_S, LONGEST_LOCK_S);
}

/** Pages that lie in a share must not act in the name of whoever looks at them. */
export function toClient(headers: IncomingHttpHeaders, method: string): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !ANSWER_DROPPED.has(name)),
  );
  return method === 'GET' || method === 'HEAD'
    ? { ...passed, 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }
    : passed;
}
