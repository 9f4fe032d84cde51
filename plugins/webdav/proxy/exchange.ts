import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import type { Refusal } from './answer.ts';
import type { Upstream } from './upstream.ts';
import type { UserName } from './visitors.ts';
import { formatPath } from './requests/path.ts';
import { toClient } from './requests/headers.ts';

/** A client that reads nothing of an answer, or sends nothing of its body, for so long is disconnected. */
const IDLE_BODY_MS = 120_000;
const IDLE_ANSWER_MS = 1_800_000;

/** One request of an authenticated client, for one share. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: Upstream;
  /** Undefined where everybody is let in. */
  readonly user: UserName;
  /** The user may look at the share and change nothing. */
  readonly isReader: boolean;
  readonly parts: readonly string[];
  /** The path in the backend's notation. */
  readonly path: string;
  /** Aborts when the client leaves, or may not be here any more. */
  readonly gone: AbortSignal;
  readonly expectsContinue: boolean;
}

/** Limits the time only until the body has arrived: processing it may take long. */
export function limitIdle(request: IncomingMessage): void {
  request.setTimeout(IDLE_BODY_MS, () => request.destroy());
}

export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(status: number, text: string) {
    super(text);
    this.refusal = { status, text };
  }
}

export function backendPath(upstream: Upstream, parts: readonly string[], isFolder: boolean): string {
  const path = formatPath({ share: upstream.name, parts });
  return isFolder || parts.length === 0 ? `${path}/` : path;
}

/** Forwards the backend's answer as it arrives. */
export function passOn(
  from: IncomingMessage,
  { request, response, gone }: Exchange,
  rewrite?: Transform,
): void {
  if (gone.aborted) return void from.destroy();
  const headers = toClient(from.headers, request.method ?? '');
  if (rewrite) delete headers['content-length'];
  response.writeHead(from.statusCode ?? 502, headers);
  if (request.method === 'HEAD') {
    from.resume();
    return void response.end();
  }
  response.setTimeout(IDLE_ANSWER_MS);
  (rewrite ? from.pipe(rewrite) : from).pipe(response);
  // The backend ended the answer too early: the client must notice that it is incomplete.
  from.once('close', () => {
    if (!from.complete) response.destroy();
  });
  response.once('close', () => from.destroy());
}
