import type { IncomingMessage } from 'node:http';
import { allByName, asksForAll, WithoutAbsent } from './all-properties.ts';
import { answer, hasBody, xmlError } from '../answer.ts';
import type { Refusal } from '../answer.ts';
import { after } from '../clock.ts';
import { backendPath, passOn, Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import { toBackend } from './headers.ts';
import { parseDestination } from './path.ts';
import { put } from '../writes/put.ts';
import type { PutTools } from '../writes/put.ts';
import { replace } from '../writes/replace.ts';
import { bodyOf, statOf } from './stat.ts';

/** Of what is XML; files go another way. A client says in a few hundred bytes what it wants to know. */
const MAX_BODY_BYTES = 131_072;
const MAX_ANSWER_BYTES = 1_048_576;
const WHOLE_BODY_MS = 20_000;
/** A range for each byte costs the NAS a thousand times what the client pays for it. */
const MAX_RANGES = 16;
const WRITING = new Set(['PUT', 'DELETE', 'MKCOL', 'COPY', 'MOVE', 'PROPPATCH', 'LOCK', 'UNLOCK']);
const TOO_LONG = 'This is too long.';
const NOTHING = Buffer.alloc(0);
const LEAVING: Refusal = {
  status: 503,
  text: 'This share is being taken down; try again later.',
  headers: { 'retry-after': '30' },
};
const REPLACING = new Set(['DELETE', 'MOVE', 'COPY']);
/** Refused for a share as a whole. */
const OF_SHARES = new Set(['DELETE', 'MOVE', 'COPY', 'MKCOL']);
const READING = ['OPTIONS', 'GET', 'HEAD', 'PROPFIND'];
export const METHODS: ReadonlySet<string> = new Set([...READING, ...WRITING]);

/** One request for something in a share, of a client who is in. Rejects with `Refused` or `Unavailable`. */
export async function serve(exchange: Exchange, tools: PutTools): Promise<void> {
  const { request, response } = exchange;
  const method = request.method ?? '';
  const refusal = refuse(exchange);
  if (refusal) return answer(request, response, refusal);
  if (method === 'OPTIONS') return options(exchange);
  if (method === 'PUT') return put(exchange, tools);
  await act(exchange, tools);
}

async function act(exchange: Exchange, tools: PutTools): Promise<void> {
  const { request, response, upstream: gate } = exchange;
  if (exchange.expectsContinue) response.writeContinue();
  const body = hasBody(request) ? await shortBody(request) : NOTHING;
  if (
    request.method === 'MKCOL' &&
    (await statOf(gate, exchange.parts, request.headers.host ?? '', exchange.gone))
  )
    throw new Refused(405, 'There is something of that name already.');
  if (isListing(request) && asksForAll(body)) return listAll(exchange);
  const target = targetOf(exchange);
  if (target && (await replace(exchange, target, tools))) return;
  await forward(exchange, body, { tools, target });
}

async function shortBody(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw new Refused(413, TOO_LONG);
  const late = new Promise<'late'>((resolve) =>
    request.once(
      'close',
      after(WHOLE_BODY_MS, () => resolve('late')),
    ),
  );
  const body = await Promise.race([bodyOf(request, MAX_BODY_BYTES), late]);
  if (body === 'late') throw new Refused(408, 'What is asked for came too slowly.');
  if (!body) throw new Refused(413, TOO_LONG);
  return body;
}

/** What never reaches an backend. */
function refuse(exchange: Exchange): Refusal | undefined {
  const { method = '', headers } = exchange.request;
  if (WRITING.has(method)) return refuseWriting(exchange, method);
  if (isCovered(exchange)) return LEAVING;
  if (headers.range !== undefined && headers.range.split(',', MAX_RANGES + 1).length > MAX_RANGES)
    return { status: 416, text: `No more than ${MAX_RANGES} ranges can be asked for at once.` };
  // A walk over everything that the NAS holds.
  const isWalk = method === 'PROPFIND' && headers.depth !== '0' && headers.depth !== '1';
  return isWalk ? { status: 403, text: xmlError('propfind-finite-depth') } : undefined;
}

/** What is served by its path may look empty while it is taken down. */
function isCovered({ upstream: gate }: Exchange): boolean {
  const { isSealed, backend: engine } = gate.attached?.share ?? {};
  return isSealed === true && engine?.port !== undefined;
}

function refuseWriting({ upstream: gate, parts }: Exchange, method: string): Refusal | undefined {
  const { share } = gate.attached ?? {};
  if (share?.readOnly === true) return { status: 403, text: 'This share is read-only.' };
  if (share?.isSealed === true) return LEAVING;
  if (parts.length > 0 || !OF_SHARES.has(method)) return undefined;
  return {
    status: method === 'MKCOL' ? 405 : 403,
    text: 'A share itself cannot be moved, copied or deleted.',
  };
}

function options({ request, response, upstream: gate }: Exchange): void {
  const isWritable = gate.attached?.share.readOnly !== true;
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
    tools: { clearUp },
    target,
  }: { readonly tools: PutTools; readonly target: readonly string[] | undefined },
): Promise<void> {
  const { request, upstream: gate, gone, parts } = exchange;
  const method = request.method ?? '';
  const headers = {
    ...toBackend(request.headers, method === 'LOCK'),
    'content-length': body.length,
    ...destination(exchange, target),
  };
  const isReading = READING.includes(method);
  const answered = await gate.ask(
    { method, path: exchange.path, headers, body },
    { signal: isReading ? gone : undefined },
  );
  if (REPLACING.has(method) && (answered.statusCode ?? 500) < 300)
    await clearUp.forget(gate.name, target ?? parts);
  if (method === 'PROPPATCH' && answered.statusCode === 207) return acceptProperties(answered, exchange);
  passOn(answered, exchange);
}

function isListing({ method, headers }: IncomingMessage): boolean {
  return method === 'PROPFIND' && headers.depth === '1';
}

/** All that is to be told of a folder and what lies in it, asked for in the way that costs least. */
async function listAll(exchange: Exchange): Promise<void> {
  const { request, upstream: gate, gone, path } = exchange;
  const body = allByName(gate.attached?.engine.takesProperties === true);
  const headers = {
    ...toBackend(request.headers),
    'content-type': 'application/xml',
    'content-length': body.length,
  };
  const answered = await gate.ask({ method: 'PROPFIND', path, headers, body }, { signal: gone });
  passOn(answered, exchange, answered.statusCode === 207 ? new WithoutAbsent() : undefined);
}

/** Kept nowhere, as with newer backends: Explorer and Finder take a refusal for a failed upload. */
async function acceptProperties(answered: IncomingMessage, exchange: Exchange): Promise<void> {
  const { request, response, upstream: gate } = exchange;
  if (gate.attached?.engine.takesProperties !== false) return passOn(answered, exchange);
  const text = (await bodyOf(answered, MAX_ANSWER_BYTES))?.toString('utf8') ?? '';
  answer(request, response, {
    status: 207,
    text: text.replaceAll('HTTP/1.1 403 Forbidden', 'HTTP/1.1 200 OK'),
  });
}

/** Where a copy or move leads to. */
function targetOf({ request, upstream: gate }: Exchange): readonly string[] | undefined {
  if (request.method !== 'COPY' && request.method !== 'MOVE') return undefined;
  const place = parseDestination(request.headers.destination as string | undefined, request.headers.host);
  if (place === undefined) throw new Refused(400, 'The destination is missing or cannot be read.');
  if (place === 'elsewhere' || place.share !== gate.name.normalize('NFC'))
    throw new Refused(502, 'Files can be copied and moved within one share only.');
  if (place.parts.length === 0) throw new Refused(403, 'A share itself cannot be overwritten.');
  return place.parts;
}

/** Without a word on it, what lies there is overwritten: an backend takes silence for a no. */
function destination(
  { request, upstream: gate }: Exchange,
  target: readonly string[] | undefined,
): { destination?: string; overwrite?: string } {
  if (!target) return {};
  const { host = 'localhost', overwrite } = request.headers;
  return {
    destination: `http://${host}${backendPath(gate, target, false)}`,
    overwrite: overwrite === 'F' ? 'F' : 'T',
  };
}
