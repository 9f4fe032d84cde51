/** POST /api/refresh/{share}. */
import type { ServerRoute } from '@hapi/hapi';
import { documented, Joi, timeBoxOr } from 'mountkeeper';
import type { PluginContext, RefreshResult, RouteDocument } from 'mountkeeper';

const MAX_BODY_BYTES = 16 * 1024;
/**
 * How long the request waits; a longer refresh continues in the background, and the status then shows its
 * result.
 */
const ANSWER_WITHIN_MS = 20_000;
const MOST_FAILURES = 100;

const TEXT = Joi.string().allow('').required();
const COUNT = Joi.number().integer().allow(null).required();
const ANSWER = Joi.object({
  ok: Joi.boolean().required(),
  message: TEXT,
  dirs_ok: COUNT,
  dirs_failed: COUNT,
  failed: Joi.array()
    .items(Joi.object({ path: TEXT, reason: TEXT }))
    .max(MOST_FAILURES)
    .required(),
});
const DOCUMENT: RouteDocument = {
  summary: 'Refreshes the listings of a folder, and of everything below it',
  body: Joi.object({
    path: Joi.string().allow('').default('').description('Below the share; empty for all of it.'),
  }),
  answers: { 200: ANSWER, 400: ANSWER },
};

export interface RefreshAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly dirs_ok: number | null;
  readonly dirs_failed: number | null;
  readonly failed: readonly { readonly path: string; readonly reason: string }[];
}

function answer(ok: boolean, message: string): RefreshAnswer {
  return { ok, message, dirs_ok: null, dirs_failed: null, failed: [] };
}

/** The folder in `{"path": "…"}`, a path below the share; without a body or path, the whole share. */
export function folderOf(payload: unknown): string | undefined {
  const body = payload ?? {};
  if (typeof body !== 'object' || Array.isArray(body)) return undefined;
  const { path = '' } = body as { path?: unknown };
  if (typeof path !== 'string' || path.includes('\0') || path.split('/').includes('..')) return undefined;
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

function through(share: string, { ok, failed }: RefreshResult): RefreshAnswer {
  const refreshed = `Refreshed ${ok} ${ok === 1 ? 'folder' : 'folders'} of share '${share}'`;
  const message = failed.length === 0 ? refreshed : `${refreshed}, ${failed.length} failed`;
  return {
    ok: failed.length === 0,
    message,
    dirs_ok: ok,
    dirs_failed: failed.length,
    failed: failed.slice(0, MOST_FAILURES),
  };
}

async function refresh(ctx: PluginContext, share: string, folder: string): Promise<RefreshAnswer> {
  const { shares } = ctx.use('config').current.config;
  if (!shares.some(({ name }) => name === share)) return answer(false, `Share '${share}' not found`);
  const done = ctx
    .use('directoryRefresher')
    .refresh(share, folder)
    .then(
      (result) => through(share, result),
      (error: unknown) => answer(false, (error as Error).message),
    );
  return timeBoxOr(ctx.use('clock'), ANSWER_WITHIN_MS, done, () =>
    answer(true, `Share '${share}' is still being refreshed; the status will tell`),
  );
}

export function routes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'POST',
      path: '/api/refresh/{share}',
      options: {
        ...documented(DOCUMENT, { role: 'operator', verb: 'refresh', share: 'share' }),
        payload: {
          maxBytes: MAX_BODY_BYTES,
          allow: 'application/json',
          failAction: (_request, h, error) =>
            h
              .response(answer(false, `Invalid request: ${error?.message ?? 'unreadable body'}`))
              .code(400)
              .takeover(),
        },
      },
      handler: async (request, h) => {
        const folder = folderOf(request.payload);
        if (folder === undefined)
          return h
            .response(
              answer(
                false,
                'Invalid request: "path" must be a folder below the share, such as "photos/2024"',
              ),
            )
            .code(400);
        return h.response(await refresh(ctx, String(request.params['share']), folder));
      },
    },
  ];
}
