import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { wantedTime } from './times.ts';

/** Request headers that mean something to a backend; no others are forwarded. */
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
] as const;
/** Hop-by-hop headers, and headers that do not concern clients. */
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

/** Longest lock; living clients renew theirs. */
const LONGEST_LOCK_S = 3_600;

export function toBackend(headers: IncomingHttpHeaders, isLock = false): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(
    REQUEST.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
  // A lock without an end would survive a client that crashes: nobody could write the file until the share
  // is mounted again.
  if (isLock) passed['timeout'] = `Second-${lockSeconds(headers['timeout'])}`;
  const seconds = wantedTime(headers);
  if (seconds !== undefined) passed['x-oc-mtime'] = seconds;
  return passed;
}

function lockSeconds(timeout: string | string[] | undefined): number {
  const wished = [...String(timeout ?? '').matchAll(/Second-(\d+)/gi)].map(([, seconds]) => Number(seconds));
  return Math.min(wished[0] ?? LONGEST_LOCK_S, LONGEST_LOCK_S);
}

/** Kept with the upload: a file that its writer has locked can be repaired only with the lock's token. */
export function ofUpload(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const {
    host,
    'content-type': type,
    if: condition,
    'lock-token': token,
    'x-oc-mtime': time,
  } = toBackend(headers);
  const kept = { host, 'content-type': type, if: condition, 'lock-token': token, 'x-oc-mtime': time };
  return Object.fromEntries(
    Object.entries(kept).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** How long a body will be, in bytes, as its client says. Finder sends no length, but a header of its own. */
export function announcedBytes(headers: IncomingHttpHeaders): number | undefined {
  const bytes = Number(headers['content-length'] ?? headers['x-expected-entity-length']);
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : undefined;
}

/** HTML pages in a share must not act in the name of the person who opens them. */
export function toClient(headers: IncomingHttpHeaders, method: string): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !ANSWER_DROPPED.has(name)),
  );
  return method === 'GET' || method === 'HEAD'
    ? { ...passed, 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }
    : passed;
}
