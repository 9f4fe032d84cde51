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

/** What belongs to the connection is not the plugin's. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * What browsers take for the whole site and its other pages: cookies, which no route of a process of its own is sent
 * back, what is kept or reported of all pages, and another server to ask in its place.
 */
const OF_SITE: ReadonlySet<string> = new Set([
  'accept-ch',
  'alt-svc',
  'clear-site-data',
  'expect-ct',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'x-content-type-options',
  'x-frame-options',
]);
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
    if (OF_CONNECTION.has(name) || OF_SITE.has(name)) continue;
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
