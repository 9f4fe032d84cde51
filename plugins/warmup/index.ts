import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Boom, definePlugin } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { warmupTabs } from './tab.ts';
import { warmupCommand } from './cli.ts';
import { check, schema } from './config.ts';
import type { WarmupConfig } from './config.ts';
import { startHelper } from './scheduler/worker-process.ts';
import { readTasks, writeTasks } from './scheduler/saved-tasks.ts';
import { noticesOf } from './scheduler/notices.ts';
import { routes } from './routes.ts';
import { WarmupScheduler } from './scheduler/scheduler.ts';
import { summaryOf } from './scheduler/task.ts';
import type { Target } from './scheduler/task.ts';

declare module 'mountkeeper' {
  interface Commands {
    /** Fetches what the target names into the cache as soon as its share can. */
    warmup: { args: [target: Target]; result: void };
  }
}

const LOOK_EVERY_MS = 500;

interface Opened {
  readonly scheduler: WarmupScheduler;
  /** Resolves once everything is on the disk. */
  close(): Promise<void>;
}

async function open(ctx: PluginContext<WarmupConfig>): Promise<Opened> {
  const folder = join(ctx.use('paths').stateDir, 'warmup');
  const [file, lists] = [join(folder, 'tasks.json'), join(folder, 'lists')];
  await rm(lists, { recursive: true, force: true });
  await mkdir(lists, { recursive: true, mode: 0o700 });
  let saving: Promise<void> = Promise.resolve();
  const scheduler = new WarmupScheduler({
    clock: ctx.use('clock'),
    log: ctx.log,
    config: () => ctx.config,
    shares: () => ctx.use('shares').list(),
    folder: lists,
    start: startHelper,
    former: await readTasks(file),
    save: (tasks) => {
      saving = saving
        .then(() => writeTasks(file, tasks))
        .catch((error: unknown) => ctx.log.error({ file, err: error }, 'state of the warmup not saved'));
    },
  });
  return {
    scheduler: scheduler,
    close: async () => {
      await scheduler.close();
      await saving;
    },
  };
}

export default definePlugin<WarmupConfig>({
  name: 'warmup',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Fetches what rules name into the cache before anybody asks for it.',
  requires: ['shares'],
  config: { section: 'warmup', schema, check },
  register(ctx) {
    let scheduler: WarmupScheduler | undefined;
    const opened = (): WarmupScheduler => {
      if (scheduler === undefined) throw Boom.serverUnavailable('The warmup is coming up');
      return scheduler;
    };
    ctx.effect('warm up shares', async () => {
      const { close, ...made } = await open(ctx);
      scheduler = made.scheduler;
      return async () => {
        scheduler = undefined;
        await close();
      };
    });
    ctx.every({
      name: 'look which warmup can go on',
      ms: () => LOOK_EVERY_MS,
      run: async () => scheduler?.look(),
    });
    ctx.job({
      name: 'scheduled warmup',
      cron: () => ctx.config.warmup_schedule,
      timezone: () => (ctx.config.timezone === '' ? undefined : ctx.config.timezone),
      run: async () => {
        const rules = scheduler?.wantRules() ?? 0;
        ctx.log.info({ rules }, 'scheduled warmup begins');
      },
    });
    ctx.handle('warmup', async (target) => opened().ask(target));
    ctx.tap('afterMount', () => scheduler?.look());
    ctx.tap('afterUnmount', () => scheduler?.look());
    ctx.tap('shareHealthChanged', () => scheduler?.look());
    ctx.tap('collectNotices', () => noticesOf(scheduler?.rules ?? []));
    ctx.onConfigChange(() => scheduler?.configure());
    ctx.status('warmup', () =>
      (scheduler?.written ?? []).map(({ target, state, counts }) => ({
        share: target.share,
        path: target.path,
        newerThan: target.newerThan,
        state,
        totalFiles: counts.total,
        skipped: counts.skipped,
        cached: counts.cached,
        errors: counts.errors,
      })),
    );
    ctx.shareStatus((share) =>
      summaryOf((scheduler?.rules ?? []).filter(({ target }) => target.share === share)),
    );
    ctx.route(...routes({ ctx, scheduler: opened }));
    for (const tab of warmupTabs({ ctx, scheduler: opened })) ctx.tab(tab);
    ctx.cli(warmupCommand);
  },
});
