/** GET /api/plugins, POST /api/plugins/{name}/enable and …/log-level, and GET /api/notices. */
import { readFile } from 'node:fs/promises';
import type { ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { documented, editToml, Joi } from 'mountkeeper';
import type { PluginContext, PluginInfo } from 'mountkeeper';
import { openApi } from './openapi/document.ts';
import { reasonOf } from './config/changes.ts';
import { DOCUMENTS } from './openapi/answers.ts';
import { refuseBody } from './refuse-body.ts';

const FILE_DIFFERS = 'The configuration file is not what runs now: mend it first, or have it read again';

export interface PluginView {
  name: string;
  version: string;
  description: string;
  state: string;
  reason: string | null;
  effects: readonly string[];
  third_party: boolean;
  isolation: string;
  permissions: readonly string[] | null;
}

function pluginView(info: PluginInfo): PluginView {
  return {
    name: info.name,
    version: info.version,
    description: info.description,
    state: info.state,
    reason: info.reason ?? null,
    effects: info.effects,
    third_party: info.thirdParty,
    isolation: info.isolation,
    permissions: info.permissions ?? null,
  };
}

/** For the generation that answers: built once per generation, because its routes never change. */
function openApiRoute(): ServerRoute {
  const built = new WeakMap<object, string>();
  return {
    method: 'GET',
    path: '/api/openapi.json',
    options: documented(
      {
        summary: 'This description',
        answers: { 200: Joi.object().unknown().description('OpenAPI 3.1.') },
      },
      { role: 'viewer', verb: 'status', share: { filtered: true } },
    ),
    handler: ({ server }, h) => {
      const text = built.get(server.app) ?? JSON.stringify(openApi(server.table()));
      built.set(server.app, text);
      return h.response(text).type('application/json');
    },
  };
}

function enable(ctx: PluginContext, name: string): { readonly ok: boolean; readonly message: string } {
  const plugins = ctx.use('plugins');
  const info = plugins.list().find((one) => one.name === name);
  if (!info) return { ok: false, message: `Plugin '${name}' not found` };
  if (plugins.enable(name)) return { ok: true, message: `Bringing back the plugin '${name}'${beyond(info)}` };
  const why = info.reason === undefined || info.state === 'active' ? '' : `: ${info.reason}`;
  return { ok: false, message: `Plugin '${name}' did not break off, it is ${info.state}${why}` };
}

/** What somebody should know who switches it on. */
function beyond({ everyUser }: PluginInfo): string {
  return everyUser ? `; ${everyUser.detail}; ${everyUser.advice}` : '';
}

/** Written into the file as any change over HTTP is; `default` takes the key out of it. */
async function setLogLevel(
  ctx: PluginContext,
  { name, payload }: { readonly name: string; readonly payload: unknown },
  h: ResponseToolkit,
): Promise<ResponseObject> {
  const answer = (status: number, message: string): ResponseObject =>
    h.response({ ok: status === 200, message }).code(status);
  const level = (payload as { readonly level?: unknown } | null)?.level;
  if (typeof level !== 'string')
    return answer(400, 'Invalid request: "level" must be a text such as "debug"');
  if (
    !ctx
      .use('plugins')
      .list()
      .some((one) => one.name === name)
  )
    return h.response({ ok: false, message: `Plugin '${name}' not found` });
  const [changes, config] = [ctx.use('configChanges'), ctx.use('config')];
  const edit = { path: ['plugins', name, 'log_level'], value: level === 'default' ? undefined : level };
  const { version } = changes;
  try {
    // What somebody is just writing by hand must not be lost.
    if ((await readFile(config.file, 'utf8')) !== config.current.text) return answer(412, FILE_DIFFERS);
    const text = editToml(config.current.text, [edit]);
    const { status, message } = await changes.submit({ text, by: 'api', version });
    const done = level === 'default' ? 'at the level of the whole daemon' : `from '${level}' on`;
    return answer(status, status === 200 ? `The plugin '${name}' logs ${done}` : message);
  } catch (error) {
    return answer(400, `Invalid request: ${reasonOf(error)}`);
  }
}

export function daemonRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    openApiRoute(),
    {
      method: 'GET',
      path: '/api/plugins',
      options: documented(DOCUMENTS.plugins, { role: 'operator', verb: 'config' }),
      handler: (_request, h) => h.response(ctx.use('plugins').list().map(pluginView)),
    },
    {
      method: 'POST',
      path: '/api/plugins/{name}/enable',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(DOCUMENTS.enablePlugin, { role: 'admin', verb: 'config' }),
        payload: { maxBytes: 16 * 1024, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: (request, h) => h.response(enable(ctx, String(request.params['name']))),
    },
    {
      method: 'POST',
      path: '/api/plugins/{name}/log-level',
      options: {
        ...documented(DOCUMENTS.logLevel, { role: 'admin', verb: 'config' }),
        payload: { maxBytes: 16 * 1024, allow: 'application/json', failAction: refuseBody },
      },
      handler: ({ params, payload }, h) => setLogLevel(ctx, { name: String(params['name']), payload }, h),
    },
    {
      method: 'GET',
      path: '/api/notices',
      options: documented(DOCUMENTS.notices, { role: 'viewer', verb: 'status' }),
      handler: (_request, h) =>
        h.response(ctx.use('status').notices.map(({ level, message }) => ({ level, message }))),
    },
  ];
}
