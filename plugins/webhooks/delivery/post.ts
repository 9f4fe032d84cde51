import type { lookup } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { request as requestSecure } from 'node:https';
import { addressProblem, hostOf, RefusedName, safeLookup, targetProblem } from './address.ts';
import type { Outgoing } from './formats.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { request: requestPlain } = process.getBuiltinModule('node:http');

const MOST_BODY_BYTES = 64 * 1_024;
const MOST_REDIRECTS = 3;
/** Redirects that keep the method POST. */
const REDIRECTS = new Set([301, 302, 307, 308]);

export interface Reply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The beginning of the body. */
  readonly body: string;
}

interface Raw extends Reply {
  readonly location: string | undefined;
}

export interface PostOptions {
  readonly signal: AbortSignal;
  /** Whether loopback, link-local and metadata addresses are allowed. */
  readonly allowPrivate: boolean;
  /** Default: the system's resolver. */
  readonly resolve?: typeof lookup;
}

/**
 * Sends one POST and follows redirects on the same host; each address is checked, and each name when it is
 * connected to. Rejects with a plain sentence, or the signal's reason.
 */
export async function post(outgoing: Outgoing, options: PostOptions): Promise<Reply> {
  let { url } = outgoing;
  for (let redirects = 0; ; redirects += 1) {
    const problem = addressProblem(url.href) ?? (options.allowPrivate ? undefined : targetProblem(url));
    if (problem !== undefined) throw new Error(`the address ${problem}`);
    const reply = await once({ ...outgoing, url }, options);
    if (!REDIRECTS.has(reply.status) || reply.location === undefined) return reply;
    url = target(reply.location, url);
    if (redirects >= MOST_REDIRECTS) throw new Error('the receiver redirects too often');
  }
}

function target(location: string, from: URL): URL {
  if (!URL.canParse(location, from.href))
    throw new Error('the receiver redirects to something that is no address');
  const next = new URL(location, from.href);
  const isDowngrade = from.protocol === 'https:' && next.protocol !== 'https:';
  if (next.hostname !== from.hostname || isDowngrade)
    throw new Error('the receiver redirects to another host or to plain http, which is refused');
  return next;
}

function once(
  { url, headers, body }: Outgoing,
  { signal, allowPrivate, resolve }: PostOptions,
): Promise<Raw> {
  const send = url.protocol === 'https:' ? requestSecure : requestPlain;
  const bytes = Buffer.from(body);
  return new Promise((done, reject) => {
    const fail = (error: Error): void =>
      reject(signal.aborted ? (signal.reason as Error) : new Error(wordsOf(error), { cause: error }));
    const asked = send(
      {
        protocol: url.protocol,
        hostname: hostOf(url.hostname),
        port: url.port,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        ...(url.username !== '' && {
          auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`,
        }),
        headers: { 'user-agent': 'mountkeeper', ...headers, 'content-length': bytes.length },
        agent: false,
        signal,
        ...(!allowPrivate && { lookup: safeLookup(resolve) }),
      },
      (response) => void read(response).then(done, fail),
    );
    asked.on('error', fail);
    asked.end(bytes);
  });
}

async function read(response: IncomingMessage): Promise<Raw> {
  const { statusCode: status = 0, headers } = response;
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size >= MOST_BODY_BYTES) break;
  }
  return {
    status,
    retryAfter: headers['retry-after'],
    location: headers.location,
    body: Buffer.concat(pieces).toString(),
  };
}

/** Never contains the address: some receivers' addresses are secret. */
function wordsOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ECONNREFUSED') return 'the receiver refuses connections';
  if (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN')
    return 'the host name of the receiver cannot be found';
  if (error.code === 'ECONNRESET' || error.code === 'EPIPE') return 'the receiver broke the connection off';
  if (error.code?.startsWith('HPE_') === true) return 'the receiver answered something that is no HTTP';
  if (error.code !== undefined) return `the receiver cannot be reached (${error.code})`;
  return error instanceof RefusedName ? error.message : 'the receiver cannot be reached';
}
