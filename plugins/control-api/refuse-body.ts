import type { Lifecycle } from '@hapi/hapi';
import { Boom } from 'mountkeeper';
import { reasonOf } from './config/changes.ts';

/** Refuses a body that is too large, not JSON, of another type, or too slow. */
export const refuseBody: Lifecycle.Method = (_request, h, error) => {
  const status = Boom.isBoom(error) && error.output.statusCode < 500 ? error.output.statusCode : 400;
  const advice = status === 415 ? 'send the body as application/json' : reasonOf(error);
  return h
    .response({ ok: false, message: `Invalid request: ${advice}` })
    .code(status)
    .takeover();
};
