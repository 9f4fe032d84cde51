import type { IncomingMessage } from 'node:http';
import { timeBoxOr } from 'mountkeeper/sdk';
import { allByName, asksForAll, WithoutAbsent } from './all-properties.ts';
import { answer, hasBody, xmlError } from '../answer.ts';
import type { Refusal } from '../answer.ts';
import { clock } from '../clock.ts';
import { backendPath, passOn, Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import type { LockBook } from '../lock-book.ts';
import { toBackend } from './headers.ts';
import { parseDestination } from './path.ts';
import { put } from '../writes/put.ts';
import type { PutTools } from '../writes/put-tools.ts';
import { Unavailable, UNREAD } from '../upstream.ts';
import type { Upstream } from '../upstream.ts';
import { replace } from '../writes/replace.ts';
import { bodyOf, statOf } from './stat.ts';
import { refuseName } from './unkept-names.ts';
import { mayHaveFailed } from './unread.ts';

/** Limit for XML bodies, which clients need only a few hundred bytes for; files are sent in another way. */
const MAX_BODY_BYTES = 131_072;
const MAX_ANSWER_BYTES = 1_048_576;
const WHOLE_BODY_MS = 20_000;
/** Many small ranges cost the NAS a thousand times what they cost the client. */
const MAX_RANGES = 16;
const WRITING = new Set(['PUT', 'DELETE', 'MKCOL', 'COPY', 'MOVE', 'PROPPATCH', 'LOCK', 'UNLOCK']);
const TOO_LONG = 'This is too long.';
const NOTHING = Buffer.alloc(0);
const REPLACING = new Set(['DELETE', 'MOVE', 'COPY']);
/** Methods that are refused on a share's root. */
const OF_SHARES = new Set(['DELETE', 'MOVE', 'COPY', 'MKCOL']);
/** Methods that may make what they name. */
const NAMING = new Set(['PUT', 'MKCOL', 'LOCK']);
const READING = ['OPTIONS', 'GET', 'HEAD', 'PROPFIND'];
export const METHODS: ReadonlySet<string> = new Set([...READING, ...WRITING]);

export interface ShareTools extends PutTools {
  readonly locks: LockBook;
}

export function isWriting(method: string): boolean {
  return WRITING.has(method);
}

/**
 * Serves one request of an authenticated client for something in a share. Rejects with `Refused` or
 * `Unavailable`.
 */
export async function serve(exchange: Exchange, tools: ShareTools): Promise<void> {
  const { request, response } = exchange;
  const method = request.method ?? '';
  const refusal = refuse(exchange);
  if (refusal) return answer(request, response, refusal);
  if (method === 'OPTIONS') return options(exchange);
  if (isWriting(method)) await exchange.upstream.writable(exchange.gone);
  if (NAMING.has(method)) refuseName(exchange, exchange.parts);
  if (method === 'PUT') return put(exchange, tools);
  await act(exchange, tools);
}

async function act(exchange: Exchange, tools: ShareTools): Promise<void> {
  const { request, response } = exchange;
  if (exchange.expectsContinue) response.writeContinue();
  const body = hasBody(request) ? await shortBody(request) : NOTHING;
  if (request.method === 'MKCOL') await refuseTaken(exchange);
  if (request.method === 'LOCK') await beforeLock(exchange, body);
  if (isListing(request) && asksForAll(body)) return listAll(exchange);
  const target = targetOf(exchange);
  if (target) refuseName(exchange, target);
  if (target && (await replace(exchange, target, tools))) return;
  await forward(exchange, body, { tools, target });
}

/** What is there, once that can be believed; the backend knows it from then on, too. */
function found({ request, upstream, gone }: Exchange, parts: readonly string[]): ReturnType<typeof statOf> {
  return statOf(upstream, parts, request.headers.host ?? '', gone);
}

/**
 * A backend makes an empty file where it finds none, and empties the one that is there if it only could not look. A
 * lock that is prolonged, without a body, makes nothing.
 */
async function beforeLock(exchange: Exchange, body: Buffer): Promise<void> {
  if (body.length > 0) await found(exchange, exchange.parts);
}

async function refuseTaken(exchange: Exchange): Promise<void> {
  if (await found(exchange, exchange.parts))
    throw new Refused(405, 'There is something of that name already.');
}

async function shortBody(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw new Refused(413, TOO_LONG);
  const body = await timeBoxOr(clock, WHOLE_BODY_MS, bodyOf(request, MAX_BODY_BYTES), () => {
    throw new Refused(408, 'What is asked for came too slowly.');
  });
  if (!body) throw new Refused(413, TOO_LONG);
  return body;
}

/** Requests that are never forwarded to a backend. */
function refuse(exchange: Exchange): Refusal | undefined {
  const { method = '', headers } = exchange.request;
  if (WRITING.has(method)) return refuseWriting(exchange, method);
  if (headers.range !== undefined && headers.range.split(',', MAX_RANGES + 1).length > MAX_RANGES)
    return { status: 416, text: `No more than ${MAX_RANGES} ranges can be asked for at once.` };
  // It would walk through everything on the NAS.
  const isWalk = method === 'PROPFIND' && headers.depth !== '0' && headers.depth !== '1';
  return isWalk ? { status: 403, text: xmlError('propfind-finite-depth') } : undefined;
}

function refuseWriting({ upstream, parts, isReader }: Exchange, method: string): Refusal | undefined {
  if (isReadOnly(upstream)) return { status: 403, text: 'This share is read-only.' };
  if (isReader) return { status: 403, text: 'You may read this share and change nothing.' };
  if (parts.length > 0 || !OF_SHARES.has(method)) return undefined;
  return {
    status: method === 'MKCOL' ? 405 : 403,
    text: 'A share itself cannot be moved, copied or deleted.',
  };
}

/** For good, not only until it is mounted anew. */
function isReadOnly({ attached, isFrozen }: Upstream): boolean {
  return attached?.share.readOnly === true && !isFrozen;
}

function options({ request, response, upstream, isReader }: Exchange): void {
  const isWritable = !isReader && !isReadOnly(upstream);
  answer(request, response, {
    status: 200,
    text: '',
    headers: {
      allow: (isWritable ? [...METHODS] : READING).join(', '),
      dav: isWritable ? '1, 2' : '1',
      'ms-author-via': 'DAV',
      'accept-ranges': 'bytes',
      'content-length': 0,
    },
  });
}

async function forward(
  exchange: Exchange,
  body: Buffer,
  {
    tools: { clearUp, locks },
    target,
  }: { readonly tools: ShareTools; readonly target: readonly string[] | undefined },
): Promise<void> {
  const { request, upstream, gone, parts } = exchange;
  const method = request.method ?? '';
  const headers = {
    ...toBackend(request.headers, method === 'LOCK'),
    'content-length': body.length,
    ...destination(exchange, target),
  };
  const isReading = READING.includes(method);
  const done = REPLACING.has(method) ? await clearUp.alone(upstream, target ?? parts) : undefined;
  try {
    // What changes something is carried out once it has been sent.
    const answered = await upstream.ask(
      { method, path: exchange.path, headers, body },
      isReading ? { signal: gone } : { patience: gone },
    );
    if (target) expectRead(answered, upstream);
    await noteLock(exchange, answered, locks);
    await noteReplaced(exchange, answered, { clearUp, target });
    if (method === 'PROPPATCH' && answered.statusCode === 207)
      return await acceptProperties(answered, exchange);
    passOn(answered, exchange);
  } finally {
    done?.();
  }
}

/** Where users put or delete something, no left upload changes anything any more. */
async function noteReplaced(
  { request: { method = '' }, upstream, parts }: Exchange,
  { statusCode = 500 }: IncomingMessage,
  { clearUp, target }: Pick<ShareTools, 'clearUp'> & { readonly target: readonly string[] | undefined },
): Promise<void> {
  if (method === 'DELETE' && (statusCode < 300 || statusCode === 404)) await clearUp.removed(upstream, parts);
  else if (target && statusCode < 300) await clearUp.forget(upstream, target);
}

/** A copy or move may have been refused for no more than that the share could not be read. */
function expectRead(answered: IncomingMessage, { attached }: Upstream): void {
  if (!mayHaveFailed(answered) || attached?.isInDoubt !== true) return;
  answered.resume();
  throw new Unavailable(UNREAD);
}

async function noteLock(
  { request, upstream, user, path, gone }: Exchange,
  answered: IncomingMessage,
  locks: LockBook,
): Promise<void> {
  const { method, headers } = request;
  const { host = 'localhost' } = headers;
  if ((answered.statusCode ?? 500) >= 300) return;
  if (method === 'UNLOCK') locks.forget(headers['lock-token']);
  if (method !== 'LOCK') return;
  locks.prolong(headers['if']);
  const [token, held] = [answered.headers['lock-token'], { user, upstream, path, host }];
  // Who is gone may have been put out, and those locks that were known are given up already.
  if (gone.aborted) await locks.drop(token, held);
  else locks.note(token, held);
}

function isListing({ method, headers }: IncomingMessage): boolean {
  return method === 'PROPFIND' && headers.depth === '1';
}

/** Lists all properties of a folder and its entries in the cheapest way. */
async function listAll(exchange: Exchange): Promise<void> {
  const { request, upstream, gone, path } = exchange;
  const body = allByName(upstream.attached?.backend.takesProperties === true);
  const headers = {
    ...toBackend(request.headers),
    'content-type': 'application/xml',
    'content-length': body.length,
  };
  const answered = await upstream.ask({ method: 'PROPFIND', path, headers, body }, { signal: gone });
  passOn(answered, exchange, answered.statusCode === 207 ? new WithoutAbsent() : undefined);
}

/**
 * The properties are not stored, as with newer backends: Explorer and Finder treat a refusal as a failed
 * upload.
 */
async function acceptProperties(answered: IncomingMessage, exchange: Exchange): Promise<void> {
  const { request, response, upstream } = exchange;
  if (upstream.attached?.backend.takesProperties !== false) return passOn(answered, exchange);
  const text = (await bodyOf(answered, MAX_ANSWER_BYTES))?.toString('utf8') ?? '';
  answer(request, response, {
    status: 207,
    text: text.replaceAll('HTTP/1.1 403 Forbidden', 'HTTP/1.1 200 OK'),
  });
}

/** The target of a copy or move. */
function targetOf({ request, upstream, parts }: Exchange): readonly string[] | undefined {
  if (request.method !== 'COPY' && request.method !== 'MOVE') return undefined;
  const place = parseDestination(request.headers.destination as string | undefined, request.headers.host);
  if (place === undefined) throw new Refused(400, 'The destination is missing or cannot be read.');
  if (place === 'elsewhere' || place.share !== upstream.name.normalize('NFC'))
    throw new Refused(502, 'Files can be copied and moved within one share only.');
  if (place.parts.length === 0) throw new Refused(403, 'A share itself cannot be overwritten.');
  // The backend removes what it overwrites first: the source with it. A folder that is copied into itself, it copies a
  // thousand times.
  if (isAbove(place.parts, parts) || isAbove(parts, place.parts))
    throw new Refused(403, 'A folder cannot be put into itself, nor in the place of one that it is in.');
  return place.parts;
}

/** However the names are written: a remote may tell neither case nor Unicode forms apart. */
function isAbove(above: readonly string[], below: readonly string[]): boolean {
  const folded = (name: string | undefined): string | undefined => name?.normalize('NFC').toLowerCase();
  return above.length < below.length && above.every((name, index) => folded(name) === folded(below[index]));
}

/**
 * Without an Overwrite header an existing target is overwritten (RFC 4918); a backend assumes the opposite,
 * so the header is always sent.
 */
function destination(
  { request, upstream }: Exchange,
  target: readonly string[] | undefined,
): { destination?: string; overwrite?: string } {
  if (!target) return {};
  const { host = 'localhost', overwrite } = request.headers;
  return {
    destination: `http://${host}${backendPath(upstream, target, false)}`,
    overwrite: overwrite === 'F' ? 'F' : 'T',
  };
}
