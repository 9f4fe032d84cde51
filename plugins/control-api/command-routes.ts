/**
 * POST /api/bwlimit and POST /api/reconnect/{share}: commands to the supervisor. GET /api/bwlimit: the
 * current limits.
 */
import type { ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { documented } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { reasonOf } from './config/changes.ts';
import { DOCUMENTS } from './openapi/answers.ts';
import { refuseBody } from './refuse-body.ts';

interface CommandAnswer {
  readonly ok: boolean;
  readonly message: string;
}

interface Limit {
  readonly up: string;
  readonly down: string;
}

const MAX_BODY_BYTES = 16 * 1024;

/** A missing body means no limit in both directions, like a body without the keys. */
function limitOf(payload: unknown): Limit | undefined {
  const body = payload ?? {};
  if (typeof body !== 'object' || Array.isArray(body)) return undefined;
  const { up = '0', down = '0' } = body as { up?: unknown; down?: unknown };
  return typeof up === 'string' && typeof down === 'string' ? { up, down } : undefined;
}

async function setLimit(ctx: PluginContext, limit: Limit): Promise<CommandAnswer> {
  try {
    await ctx.send('bwlimit', limit);
    return { ok: true, message: 'Bandwidth limit updated' };
  } catch (error) {
    return { ok: false, message: `Failed to send command: ${reasonOf(error)}` };
  }
}

async function reconnect(ctx: PluginContext, share: string): Promise<CommandAnswer> {
  const { shares } = ctx.use('config').current.config;
  if (!shares.some(({ name }) => name === share)) return { ok: false, message: `Share '${share}' not found` };
  try {
    await ctx.send('reconnect', share);
    return { ok: true, message: `Reconnecting share '${share}'` };
  } catch (error) {
    return { ok: false, message: `Failed to send reconnect: ${reasonOf(error)}` };
  }
}

export function commandRoutes(ctx: PluginContext): ServerRoute[] {
  const handleLimit = async (payload: unknown, h: ResponseToolkit) => {
    const limit = limitOf(payload);
    if (limit) return h.response(await setLimit(ctx, limit));
    return h
      .response({
        ok: false,
        message: 'Invalid request: "up" and "down" must be strings such as "10M" or "0"',
      })
      .code(400);
  };
  return [
    // The current limits in bytes per second; 0 is unlimited.
    {
      method: 'GET',
      path: '/api/bwlimit',
      options: documented(DOCUMENTS.readLimit, { role: 'viewer', verb: 'status' }),
      handler: (_request, h) => h.response(ctx.use('bandwidth').read()),
    },
    {
      method: 'POST',
      path: '/api/bwlimit',
      options: {
        ...documented(DOCUMENTS.setLimit, { role: 'operator', verb: 'bandwidth' }),
        payload: { maxBytes: MAX_BODY_BYTES, allow: 'application/json', failAction: refuseBody },
      },
      handler: (request, h) => {
        request.app.about = { ...limitOf(request.payload) };
        return handleLimit(request.payload, h);
      },
    },
    {
      method: 'POST',
      path: '/api/reconnect/{share}',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(DOCUMENTS.reconnect, { role: 'operator', verb: 'reconnect', share: 'share' }),
        payload: { maxBytes: MAX_BODY_BYTES, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: async (request, h) => h.response(await reconnect(ctx, String(request.params['share']))),
    },
  ];
}
