import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Boom, createLatestQueue, definePlugin, readDescriptions, withRelease } from 'mountkeeper';
import type { PluginContext, WithRelease } from 'mountkeeper';
import { warmupTabs } from './tab.ts';
import { warmupCommand } from './cli.ts';
import { checkedTarget } from './checked-target.ts';
import { check, schema } from './config.ts';
import type { WarmupConfig } from './config.ts';
import { startHelper } from './scheduler/worker-process.ts';
import { readTasks, writeTasks } from './scheduler/saved-tasks.ts';
import { noticesOf } from './scheduler/notices.ts';
import { isShare, routes } from './routes.ts';
import { WarmupScheduler } from './scheduler/scheduler.ts';
import { summaryOf } from './scheduler/task.ts';
import type { Target, Task } from './scheduler/task.ts';

declare module 'mountkeeper' {
  interface Commands {
    /**
     * Fetches the target into the cache as soon as its share is ready. One of a share that is not known, or with
     * a path or an age that is none, is logged and changes nothing.
     */
    warmup: { args: [target: Target]; result: void };
  }

  /** Of all rules of a share together; `none` where there are none. */
  type WarmupState = 'none' | 'pending' | 'listing' | 'caching' | 'complete' | 'failed';

  interface WarmupRuleStatus {
    share: string;
    path: string;
    newerThan: string | null;
    state: Exclude<WarmupState, 'none'>;
    totalFiles: number;
    skipped: number;
    cached: number;
    errors: number;
  }

  interface StatusRecord {
    /** One entry for each rule of the configuration, in its order. */
    warmup: readonly WarmupRuleStatus[];
  }

  interface ShareStatus {
    warmupState: WarmupState;
    /** Files of the rules that are cached. */
    warmupDone: number;
    warmupTotal: number;
  }
}

const LOOK_EVERY_MS = 500;

/** Released once everything is on the disk. */
async function open(ctx: PluginContext<WarmupConfig>): Promise<WithRelease<WarmupScheduler>> {
  const folder = join(ctx.use('paths').stateDir, 'warmup');
  const [file, lists] = [join(folder, 'tasks.json'), join(folder, 'lists')];
  await rm(lists, { recursive: true, force: true });
  await mkdir(lists, { recursive: true, mode: 0o700 });
  const saving = createLatestQueue<readonly Task[]>((tasks) =>
    writeTasks(file, tasks).catch((error: unknown) =>
      ctx.log.error({ file, err: error }, 'state of the warmup not saved'),
    ),
  );
  const scheduler = new WarmupScheduler({
    clock: ctx.use('clock'),
    log: ctx.log,
    config: () => ctx.config,
    shares: () => ctx.use('shares').list(),
    folder: lists,
    start: startHelper,
    former: await readTasks(file),
    save: (tasks) => void saving.push(tasks),
  });
  return withRelease(scheduler, async () => {
    await scheduler.close();
    await saving.idle();
  });
}

export default definePlugin<WarmupConfig>({
  name: 'warmup',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Fetches what rules name into the cache before anybody asks for it.',
  requires: ['shares'],
  config: { section: 'warmup', schema, check, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const scheduler = ctx.effect('warm up shares', () => open(ctx));
    const opened = (): WarmupScheduler => {
      const now = scheduler();
      if (now === undefined) throw Boom.serverUnavailable('The warmup is coming up');
      return now;
    };
    ctx.every({
      name: 'look which warmup can go on',
      ms: () => LOOK_EVERY_MS,
      run: async () => scheduler()?.look(),
    });
    ctx.job({
      name: 'scheduled warmup',
      cron: () => ctx.config.warmup_schedule,
      timezone: () => (ctx.config.timezone === '' ? undefined : ctx.config.timezone),
      run: async () => {
        const rules = scheduler()?.wantRules() ?? 0;
        ctx.log.info({ rules }, 'scheduled warmup begins');
      },
    });
    ctx.handle('warmup', async (target) => opened().ask(checkedTarget(target, (name) => isShare(ctx, name))));
    ctx.tap('afterMount', () => scheduler()?.look());
    ctx.tap('afterUnmount', () => scheduler()?.look());
    ctx.tap('shareHealthChanged', () => scheduler()?.look());
    ctx.tap('collectNotices', () => noticesOf(scheduler()?.rules ?? []));
    ctx.onConfigChange(() => scheduler()?.configure());
    ctx.status('warmup', {
      default: [],
      read: () =>
        (scheduler()?.written ?? []).map(({ target, state, counts }) => ({
          share: target.share,
          path: target.path,
          newerThan: target.newerThan,
          state,
          totalFiles: counts.total,
          skipped: counts.skipped,
          cached: counts.cached,
          errors: counts.errors,
        })),
    });
    ctx.shareStatus({
      defaults: summaryOf([]),
      read: (share) => summaryOf((scheduler()?.rules ?? []).filter(({ target }) => target.share === share)),
    });
    ctx.route(...routes({ ctx, scheduler: opened }));
    for (const tab of warmupTabs({ ctx, scheduler: opened })) ctx.tab(tab);
    ctx.cli(warmupCommand);
  },
});
