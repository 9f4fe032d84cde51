/** GET and POST /api/config. */
import type { Lifecycle, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { Boom } from 'mountkeeper';
import type { ConfigService, PluginContext } from 'mountkeeper';

const MAX_BODY_BYTES = 1024 * 1024;

interface ConfigAnswer {
  readonly status: number;
  readonly ok: boolean;
  readonly message: string;
  readonly diffSummary: string | null;
}

function send(answer: ConfigAnswer, h: ResponseToolkit) {
  return h.response({ ok: answer.ok, message: answer.message, diff_summary: answer.diffSummary }).code(answer.status);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function refused(status: number, message: string, diffSummary: string | null = null): ConfigAnswer {
  return { status, ok: false, message, diffSummary };
}

/** The order of the steps is the API's: nothing is written before all checks, nothing is sent before it is written. */
async function submit(ctx: PluginContext, text: string): Promise<ConfigAnswer> {
  const service = ctx.use('config');
  const basis = service.current;
  const check = await service.check(text, 'http');
  if (!check.ok) {
    return refused(400, `${check.stage === 'parse' ? 'TOML parse error' : 'Validation error'}: ${check.message}`);
  }
  const { summary } = check.diff;
  if (check.diff.changes.length === 0) return { status: 200, ok: true, message: 'No changes detected', diffSummary: summary };
  try {
    await service.write(text, basis);
  } catch (error) {
    return refused(500, `Failed to write config file: ${reasonOf(error)}`, summary);
  }
  try {
    await ctx.send('reload', check.loaded);
  } catch (error) {
    return refused(500, `Failed to send reload command: ${reasonOf(error)}`, summary);
  }
  return { status: 200, ok: true, message: 'Config applied successfully', diffSummary: summary };
}

/** One submission at a time: else the file could hold one text and the daemon run another. */
function inTurn(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** The body could not be taken: too large, no JSON, of another type, or too slow. */
const refuseBody: Lifecycle.Method = (_request, h, error) => {
  const status = Boom.isBoom(error) && error.output.statusCode < 500 ? error.output.statusCode : 400;
  const advice = status === 415 ? 'send the body as application/json' : reasonOf(error);
  return send(refused(status, `Invalid request: ${advice}`), h).takeover();
};

/** Null stands for a document that has no JSON form. */
function serialised(service: ConfigService): string {
  try {
    return JSON.stringify(service.redacted()) ?? 'null';
  } catch {
    return 'null';
  }
}

function textOf(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { toml } = payload as { toml?: unknown };
  return typeof toml === 'string' ? toml : undefined;
}

export function configRoutes(ctx: PluginContext): ServerRoute[] {
  const enqueue = inTurn();
  const handlePost: Lifecycle.Method = async (request, h) => {
    const text = textOf(request.payload);
    if (text === undefined) return send(refused(400, 'Invalid request: "toml" must be a string that holds the whole configuration'), h);
    try {
      return send(await enqueue(() => submit(ctx, text)), h);
    } catch (err) {
      ctx.log.error({ err }, 'a submitted configuration could not be checked');
      return send(refused(500, `Validation error: ${reasonOf(err)}`), h);
    }
  };
  return [
    {
      method: 'GET',
      path: '/api/config',
      handler: (_request, h) => h.response(serialised(ctx.use('config'))).type('application/json'),
    },
    {
      method: 'POST',
      path: '/api/config',
      options: { payload: { maxBytes: MAX_BODY_BYTES, allow: 'application/json', failAction: refuseBody } },
      handler: handlePost,
    },
  ];
}
