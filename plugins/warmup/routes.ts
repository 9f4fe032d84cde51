/** GET and POST /api/warmup/{share}, POST /api/warmup/{share}/cancel. */
import type { ServerRoute } from '@hapi/hapi';
import { documented, Joi } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { age, folder, folderOf } from './config.ts';
import type { WarmupConfig } from './config.ts';
import { ANSWER } from './route-documents.ts';
import type { WarmupScheduler } from './scheduler/scheduler.ts';
import type { Target, Task, TaskState } from './scheduler/task.ts';

const MAX_BODY_BYTES = 16 * 1024;

export interface TaskView {
  readonly share: string;
  readonly path: string;
  readonly newer_than: string | null;
  readonly dry_run: boolean;
  readonly rule: boolean;
  readonly state: TaskState;
  /** Waiting to run, or running. */
  readonly active: boolean;
  readonly cache_full: boolean;
  readonly total_files: number;
  readonly skipped: number;
  readonly cached: number;
  readonly errors: number;
  readonly total_bytes: number;
  readonly skipped_bytes: number;
  readonly cached_bytes: number;
}

export interface WarmupAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly tasks: readonly TaskView[];
}

export interface RouteParts {
  readonly ctx: PluginContext<WarmupConfig>;
  /** Throws while the plugin is starting. */
  readonly scheduler: () => WarmupScheduler;
}

function viewOf(task: Task, rules: readonly Task[]): TaskView {
  const { target, state, counts, isWanted, isRunning, isFull } = task;
  return {
    share: target.share,
    path: target.path,
    newer_than: target.newerThan,
    dry_run: target.isDryRun,
    rule: rules.includes(task),
    state,
    active: isWanted || isRunning,
    cache_full: isFull,
    total_files: counts.total,
    skipped: counts.skipped,
    cached: counts.cached,
    errors: counts.errors,
    total_bytes: counts.totalBytes,
    skipped_bytes: counts.skippedBytes,
    cached_bytes: counts.cachedBytes,
  };
}

export interface Wish {
  readonly path: string | undefined;
  readonly newerThan: string | null;
  readonly isDryRun: boolean;
}

const wishes = Joi.object<{ path?: string; newer_than?: string; dry_run: boolean }>({
  path: folder(),
  newer_than: age(),
  dry_run: Joi.boolean().strict().default(false),
})
  .with('newer_than', 'path')
  .messages({ 'object.with': '"newer_than" needs a "path"; the rules have their own' });

/** The request in a body, or a sentence that says what is wrong with it. */
export function wishOf(payload: unknown): Wish | string {
  const { value, error } = wishes.validate(payload ?? {}, { convert: false });
  return error === undefined
    ? {
        path: value.path === undefined ? undefined : folderOf(value.path),
        newerThan: value.newer_than ?? null,
        isDryRun: value.dry_run,
      }
    : error.message;
}

/** The targets of a request: one path, or those of the share's rules. */
function targetsOf(share: string, wish: Wish, rules: readonly Task[]): readonly Target[] {
  if (wish.path !== undefined)
    return [{ share, path: wish.path, newerThan: wish.newerThan, isDryRun: wish.isDryRun }];
  return rules
    .filter(({ target }) => target.share === share)
    .map(({ target }) => ({ ...target, isDryRun: wish.isDryRun }));
}

async function start(
  share: string,
  payload: unknown,
  { ctx, scheduler }: RouteParts,
): Promise<{ code: number; body: WarmupAnswer }> {
  const refuse = (code: number, message: string) => ({ code, body: { ok: false, message, tasks: [] } });
  const wish = wishOf(payload);
  if (typeof wish === 'string') return refuse(400, `Invalid request: ${wish}`);
  if (!isShare(ctx, share)) return refuse(200, `Share '${share}' not found`);
  const { rules } = scheduler();
  const targets = targetsOf(share, wish, rules);
  if (targets.length === 0) return refuse(200, `Share '${share}' has no warmup rule; name a path`);
  try {
    for (const target of targets) await ctx.send('warmup', target);
  } catch (error) {
    return refuse(200, `Failed to send command: ${(error as Error).message}`);
  }
  const keys = new Set(targets.map((target) => JSON.stringify(target)));
  const tasks = scheduler()
    .of(share)
    .filter(({ target }) => keys.has(JSON.stringify(target)));
  return {
    code: 200,
    body: {
      ok: true,
      message: `Warming up share '${share}'`,
      tasks: tasks.map((task) => viewOf(task, rules)),
    },
  };
}

export function isShare(ctx: PluginContext<WarmupConfig>, share: string): boolean {
  return ctx.use('config').current.config.shares.some(({ name }) => name === share);
}

const WARM = { role: 'operator', verb: 'warmup', share: 'share' } as const;

export function routes(parts: RouteParts): ServerRoute[] {
  const { ctx, scheduler } = parts;
  return [
    {
      method: 'GET',
      path: '/api/warmup/{share}',
      options: documented(
        { summary: 'What is being warmed up of a share', answers: { 200: ANSWER, 404: ANSWER } },
        { role: 'viewer', verb: 'status', share: 'share' },
      ),
      handler: (request, h) => {
        const share = String(request.params['share']);
        if (!isShare(ctx, share))
          return h
            .response({ ok: false, message: `Share '${share}' not found`, tasks: [] } satisfies WarmupAnswer)
            .code(404);
        const tasks = scheduler()
          .of(share)
          .map((task) => viewOf(task, scheduler().rules));
        return { ok: true, message: '', tasks } satisfies WarmupAnswer;
      },
    },
    {
      method: 'POST',
      path: '/api/warmup/{share}',
      options: {
        ...documented(
          {
            summary: 'Warms up a path, or by the rules',
            body: wishes,
            answers: { 200: ANSWER, 400: ANSWER },
          },
          WARM,
        ),
        payload: {
          maxBytes: MAX_BODY_BYTES,
          allow: 'application/json',
          failAction: (_request, h, error) =>
            h
              .response({
                ok: false,
                message: `Invalid request: ${error?.message ?? 'unreadable body'}`,
                tasks: [],
              })
              .code(400)
              .takeover(),
        },
      },
      handler: async (request, h) => {
        const { code, body } = await start(String(request.params['share']), request.payload, parts);
        return h.response(body).code(code);
      },
    },
    {
      method: 'POST',
      path: '/api/warmup/{share}/cancel',
      options: documented({ summary: 'Ends the warmup of a share', answers: { 200: ANSWER } }, WARM),
      handler: (request) => {
        const share = String(request.params['share']);
        const isKnown = isShare(ctx, share);
        const count = isKnown ? scheduler().cancel(share) : 0;
        const message =
          count > 0 ? `Warmup of share '${share}' cancelled` : `No warmup of share '${share}' is under way`;
        return {
          ok: isKnown,
          message: isKnown ? message : `Share '${share}' not found`,
          tasks: [],
        } satisfies WarmupAnswer;
      },
    },
  ];
}
