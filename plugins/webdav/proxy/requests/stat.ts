import type { IncomingMessage } from 'node:http';
import { Unavailable } from '../upstream.ts';
import type { BackendCall } from '../backend.ts';
import type { Upstream } from '../upstream.ts';
import { formatPath } from './path.ts';

/** After this time a backend shows what others have written to the share (`--dir-cache-time=1s`), in milliseconds. */
export const SEEN_AFTER_MS = 1_200;
const MAX_ANSWER_BYTES = 1_048_576;
const ASKED = Buffer.from(
  '<?xml version="1.0" encoding="utf-8"?><D:propfind ' +
    'xmlns:D="DAV:"><D:prop><D:resourcetype/><D:getcontentlength/><D:getetag/>' +
    '<D:getlastmodified/></D:prop></D:propfind>',
);

/** What is at a path now. */
export interface Found {
  readonly isFolder: boolean;
  readonly bytes: number;
  readonly etag: string | undefined;
  /** Milliseconds since the epoch, in whole seconds. */
  readonly modifiedMs: number;
}

/** Undefined when there is nothing. */
export function statOf(
  upstream: Upstream,
  parts: readonly string[],
  host: string,
  signal?: AbortSignal,
): Promise<Found | undefined> {
  return statBy((call) => upstream.ask(call, { signal }), { share: upstream.name, parts, host });
}

/** The same, asked of a backend that its share may be leaving. */
export async function statBy(
  ask: (call: BackendCall) => Promise<IncomingMessage>,
  {
    share,
    parts,
    host,
  }: { readonly share: string; readonly parts: readonly string[]; readonly host: string },
): Promise<Found | undefined> {
  const headers = { host, depth: '0', 'content-type': 'application/xml', 'content-length': ASKED.length };
  const response = await ask({
    method: 'PROPFIND',
    path: formatPath({ share, parts }),
    headers,
    body: ASKED,
  });
  const text = await bodyOf(response, MAX_ANSWER_BYTES);
  if (response.statusCode === 404) return undefined;
  if (response.statusCode !== 207 || text === undefined)
    throw new Unavailable({ status: 502, text: `The share's server answered ${response.statusCode ?? 0}.` });
  return parseFound(text.toString('utf8'));
}

export function parseFound(xml: string): Found {
  return {
    isFolder: /<(?:\w+:)?collection\b/.test(xml),
    bytes: Number(/<(?:\w+:)?getcontentlength[^<>]*>(\d+)</.exec(xml)?.[1] ?? 0),
    etag: /<(?:\w+:)?getetag[^<>]*>([^<]+)</
      .exec(xml)?.[1]
      ?.replaceAll('&#34;', '"')
      .replaceAll('&quot;', '"'),
    modifiedMs: Date.parse(/<(?:\w+:)?getlastmodified[^<>]*>([^<]+)</.exec(xml)?.[1] ?? '') || 0,
  };
}

/** Undefined when it is larger than `maxBytes`. Rejects when the message ends too early. */
export function bodyOf(message: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    message.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size <= maxBytes) return void pieces.push(piece);
      pieces.length = 0;
      resolve(undefined);
    });
    message.once('end', () => resolve(Buffer.concat(pieces)));
    message.once('error', reject);
    message.once('close', () => reject(new Error('the message ended too early')));
  });
}
