/** A route of a plugin in its own process, as the daemon serves it: what is asked of the runner, and its answer. */
import Joi from 'joi';
import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import { Budget } from '../../instance/given-values.ts';
import type { RouteAnswer, RouteRequest } from '../protocol.ts';

/** Passwords are for the guard of the door, not for a stranger. */
const KEPT_BACK: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

export function requestOf(request: Request): RouteRequest {
  const headers = Object.entries(request.headers as Record<string, string | undefined>).flatMap(
    ([name, value]) => (KEPT_BACK.has(name) || value === undefined ? [] : [[name, String(value)] as const]),
  );
  const { payload, method, url, client } = request;
  return {
    method,
    url: `${url.pathname}${url.search}`,
    headers: Object.fromEntries(headers),
    body: Buffer.isBuffer(payload) ? payload.toString('base64') : '',
    remoteAddress: client.address,
  };
}

const text = Joi.string().allow('');
/** hapi never ends a request whose content type is no text. */
const shape = Joi.object({
  status: Joi.number().integer().min(200).max(599).required(),
  headers: Joi.object()
    .pattern(text, Joi.alternatives(text, Joi.array().items(text)))
    .required(),
  body: text.required(),
}).required();

/** Names and values of the headers of an answer. */
const MOST_IN_HEADERS = 300;

/**
 * What tells of the answer itself, by a list: all else may be for the connection, for the whole site (cookies, what
 * is kept or reported of all pages), or for a proxy in front of it. What a plugin makes up begins with `x-ext-`.
 */
const OF_ANSWER: ReadonlySet<string> = new Set([
  'accept-ranges',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-range',
  'content-security-policy',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'location',
  'referrer-policy',
  'retry-after',
  'vary',
]);
const OWN_PREFIX = 'x-ext-';
const POLICY = 'content-security-policy';
/**
 * A page of a stranger's is none of this site: its scripts run, but with no rights of whoever looks at it. Else they
 * could ask the API for whatever that person may.
 */
const SANDBOX =
  "frame-ancestors 'none'; sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/** Throws for what is no answer. */
export function answerWith(given: unknown, h: ResponseToolkit): Lifecycle.ReturnValue {
  const { status, headers, body } = plainAnswer(given);
  const response = h.response(Buffer.from(body, 'base64')).code(status).header(POLICY, SANDBOX);
  // Else hapi names a type of its own.
  if (headers['content-type'] === undefined) response.type('application/octet-stream');
  for (const [header, value] of Object.entries(headers)) {
    const name = header.toLowerCase();
    if (!OF_ANSWER.has(name) && !name.startsWith(OWN_PREFIX)) continue;
    // Browsers keep to all policies of an answer, so its own makes it no freer.
    for (const [index, one] of [value].flat().entries())
      response.header(header, one, { append: index > 0 || name === POLICY });
  }
  return response;
}

function plainAnswer(given: unknown): RouteAnswer {
  const { status, headers, body } = (given ?? {}) as Partial<RouteAnswer>;
  // Joi goes through all keys of a table, and does nothing else meanwhile.
  const small = { status, headers: new Budget(MOST_IN_HEADERS).copy(headers ?? null), body };
  const { error, value } = shape.validate(small, { convert: false });
  if (error) throw new Error(`the plugin gave an answer that cannot be sent: ${error.message}`);
  return value as RouteAnswer;
}
