/** The configuration over HTTP: reading, checking and applying it, and its history. */
import type { Lifecycle, Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { Boom, documented } from 'mountkeeper';
import type { AppliedConfig, ConfigAnswer, ConfigService, ConfigVerdict, PluginContext } from 'mountkeeper';
import { reasonOf } from './config/changes.ts';
import { DOCUMENTS } from './config/route-documents.ts';
import { interruptionText } from './config/interruption.ts';

const ADMIN = { role: 'admin', verb: 'config' } as const;
const MAX_BODY_BYTES = 1024 * 1024;
const NO_TEXT = 'Invalid request: "toml" must be a string that holds the whole configuration';

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly summary?: string | null;
}

function send(
  { status, message, summary = null, stillOpen = [] }: Refusal & Partial<ConfigAnswer>,
  h: ResponseToolkit,
): ResponseObject {
  const answer = { ok: status === 200, message, diff_summary: summary };
  return h.response(stillOpen.length > 0 ? { ...answer, still_open: stillOpen } : answer).code(status);
}

/** Refuses a body that is too large, not JSON, of another type, or too slow. */
const refuseBody: Lifecycle.Method = (_request, h, error) => {
  const status = Boom.isBoom(error) && error.output.statusCode < 500 ? error.output.statusCode : 400;
  const advice = status === 415 ? 'send the body as application/json' : reasonOf(error);
  return send({ status, message: `Invalid request: ${advice}` }, h).takeover();
};

const TAKES_JSON = { maxBytes: MAX_BODY_BYTES, allow: 'application/json', failAction: refuseBody };

/** Null for a document that has no JSON form. */
function serialised(service: ConfigService): string {
  try {
    return JSON.stringify(service.redacted()) ?? 'null';
  } catch {
    // Null, as said above; the document itself is in force all the same.
    return 'null';
  }
}

interface Body {
  readonly toml: string;
  readonly keepSecrets: boolean;
}

function bodyOf(payload: unknown): Body | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { toml, keep_secrets: keepSecrets } = payload as { toml?: unknown; keep_secrets?: unknown };
  return typeof toml === 'string' ? { toml, keepSecrets: keepSecrets === true } : undefined;
}

/** The version that the client has read: a single strong ETag. Undefined without one, or for `*`. */
function ifMatch({ headers }: Request): string | undefined {
  const given = headers['if-match'];
  if (typeof given !== 'string' || given.trim() === '*') return undefined;
  return given.trim().replace(/^"([^"]*)"$/, '$1');
}

function verdictBody(verdict: ConfigVerdict) {
  if (!verdict.ok)
    return {
      ok: false,
      message: verdict.message,
      problems: verdict.problems,
      warnings: [],
      diff_summary: null,
      changes: [],
      interrupts: null,
    };
  const { summary, changes, interrupts, warnings } = verdict;
  return {
    ok: true,
    message: '',
    problems: [],
    warnings,
    diff_summary: summary,
    changes: changes.map(({ path, tier, before, after }) => ({ path, tier, before, after })),
    interrupts: { ...interrupts, text: interruptionText(interrupts) },
  };
}

function versionBody({ version, at, by, summary }: AppliedConfig) {
  return { version, at: new Date(at).toISOString(), by, summary };
}

export function configRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/config',
      options: documented(DOCUMENTS.read, ADMIN),
      handler: (_request, h) => {
        const { version } = ctx.use('configChanges');
        return h
          .response(serialised(ctx.use('config')))
          .type('application/json')
          .etag(version);
      },
    },
    {
      method: 'POST',
      path: '/api/config',
      options: { payload: TAKES_JSON, ...documented(DOCUMENTS.apply, ADMIN) },
      handler: (request, h) => apply(ctx, request, h),
    },
    {
      method: 'POST',
      path: '/api/config/check',
      options: { payload: TAKES_JSON, ...documented(DOCUMENTS.check, ADMIN) },
      handler: async (request, h) => {
        const body = bodyOf(request.payload);
        if (!body) return send({ status: 400, message: NO_TEXT }, h);
        const { keepSecrets } = body;
        return verdictBody(await ctx.use('configChanges').check(body.toml, { keepSecrets }));
      },
    },
    ...historyRoutes(ctx),
  ];
}

async function apply(ctx: PluginContext, request: Request, h: ResponseToolkit): Promise<ResponseObject> {
  const body = bodyOf(request.payload);
  if (!body) return send({ status: 400, message: NO_TEXT }, h);
  const { toml: text, keepSecrets } = body;
  try {
    const changes = ctx.use('configChanges');
    const { isStillLetIn } = request.app;
    const version = ifMatch(request);
    const answer = await changes.submit({ text, by: 'api', keepSecrets, version, isStillLetIn });
    return send(answer, h).etag(answer.version);
  } catch (err) {
    ctx.log.error({ err }, 'a submitted configuration could not be checked');
    return send({ status: 500, message: `Validation error: ${reasonOf(err)}` }, h);
  }
}

function historyRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/config/history',
      options: documented(DOCUMENTS.history, ADMIN),
      handler: () => ({ versions: ctx.use('configChanges').history().map(versionBody) }),
    },
    {
      method: 'GET',
      path: '/api/config/history/{version}',
      options: documented(DOCUMENTS.version, ADMIN),
      handler: async (request, h) => {
        const changes = ctx.use('configChanges');
        const applied = changes.history().find(({ version }) => version === request.params['version']);
        const verdict = applied && (await changes.difference(applied.version));
        if (!applied || !verdict) return h.response().code(404);
        const toml = changes.text(applied.version) ?? '';
        return { ...versionBody(applied), toml, restoring: verdictBody(verdict) };
      },
    },
  ];
}
