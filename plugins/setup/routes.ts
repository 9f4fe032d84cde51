/** The first run over HTTP: GET /api/setup, GET /api/setup/found, POST /api/setup/folders, /check and /. */
import type { Lifecycle, Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { Boom, documented, Joi } from 'mountkeeper';
import type { PluginContext, RouteDocument } from 'mountkeeper';
import { callsOf, FOLDERS_REQUEST, SETUP_REQUEST } from './requests.ts';
import type { FoldersRequest, SetupCalls } from './requests.ts';
import type { FoundNas, SetupAnswers } from 'mountkeeper';

const MAX_BODY_BYTES = 512 * 1024;

const text = () => Joi.string().allow('').required();
const flag = () => Joi.boolean().required();
const texts = () => Joi.array().items(Joi.string().allow('')).required();
const summary = () => text().allow(null);
const FOLDERS = Joi.object({ ok: flag(), message: text(), folders: texts() });
const REVIEW = Joi.object({
  ok: flag(),
  message: text(),
  toml: text(),
  diff_summary: summary(),
  shares: texts(),
  warnings: texts(),
});
const ADDRESS = Joi.object({ share: text(), finder: text(), explorer: summary(), linux: text() });
const APPLIED = Joi.object({
  ok: flag(),
  message: text(),
  diff_summary: summary(),
  shares: texts(),
  addresses: Joi.array().items(ADDRESS).required(),
  user_kept: flag(),
});
const FOUND = Joi.object({
  found: Joi.array()
    .items(Joi.object({ kind: text(), name: text(), address: text() }))
    .required(),
});
const REFUSED = Joi.object({ ok: Joi.boolean().valid(false).required(), message: text() });

const refuseBody: Lifecycle.Method = (_request, h, error) => {
  const status = Boom.isBoom(error) && error.output.statusCode < 500 ? error.output.statusCode : 400;
  const message = `Invalid request: ${error instanceof Error ? error.message : 'the body cannot be read'}`;
  return h.response({ ok: false, message }).code(status).takeover();
};

interface Asked<T> {
  readonly path: string;
  readonly document: RouteDocument;
  readonly body: Joi.ObjectSchema<T>;
  readonly answer: (calls: SetupCalls, body: T) => Promise<object>;
}

const ADMIN = { role: 'admin', verb: 'config' } as const;

export function routes(ctx: PluginContext): ServerRoute[] {
  const calls = (): SetupCalls => callsOf(ctx.use('setup'), () => ctx.find('nasFinder'), 'api', ctx.signal);
  let looking: Promise<readonly FoundNas[]> | undefined;
  /** Callers who come while the network is looked through share that look: each costs sockets and datagrams. */
  const found = (): Promise<readonly FoundNas[]> => {
    looking ??= calls()
      .found()
      .finally(() => (looking = undefined));
    return looking;
  };
  const post = <T>({ path, document, body, answer }: Asked<T>): ServerRoute => ({
    method: 'POST',
    path,
    options: {
      ...documented(document, ADMIN),
      payload: { maxBytes: MAX_BODY_BYTES, allow: 'application/json', failAction: refuseBody },
    },
    handler: async (request: Request, h: ResponseToolkit) => {
      const checked = body.validate(request.payload ?? {}, { convert: false });
      if (checked.error)
        return h.response({ ok: false, message: `Invalid request: ${checked.error.message}` }).code(400);
      return answer(calls(), checked.value);
    },
  });
  return [
    {
      method: 'GET',
      path: '/api/setup',
      options: documented(
        {
          summary: 'Names of the shares that are configured',
          answers: { 200: Joi.object({ shares: texts() }) },
        },
        ADMIN,
      ),
      handler: async () => ({ shares: await calls().present() }),
    },
    {
      method: 'GET',
      path: '/api/setup/found',
      options: documented(
        { summary: 'Looks for NAS in the network, for two seconds', answers: { 200: FOUND } },
        ADMIN,
      ),
      handler: async () => ({ found: await found() }),
    },
    post<FoldersRequest>({
      path: '/api/setup/folders',
      document: {
        summary: 'Asks a NAS for its folders, with an account that is not configured yet',
        body: FOLDERS_REQUEST,
        answers: { 200: FOLDERS, 400: REFUSED },
      },
      body: FOLDERS_REQUEST,
      answer: (to, body) => to.folders(body),
    }),
    post<SetupAnswers>({
      path: '/api/setup/check',
      document: {
        summary: 'Says what would be added to the configuration',
        isQuestion: true,
        body: SETUP_REQUEST,
        answers: { 200: REVIEW, 400: REFUSED },
      },
      body: SETUP_REQUEST,
      answer: (to, body) => to.review(body),
    }),
    post<SetupAnswers>({
      path: '/api/setup',
      document: {
        summary: 'Adds a connection, a share for each folder, and an SMB user for the LAN',
        body: SETUP_REQUEST,
        answers: { 200: APPLIED, 400: REFUSED },
      },
      body: SETUP_REQUEST,
      answer: (to, body) => to.apply(body),
    }),
  ];
}
