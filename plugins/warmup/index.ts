import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Boom, definePlugin } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { warmupTabs } from './tab.ts';
import { warmupCommand } from './cli.ts';
import { check, schema } from './config.ts';
import type { WarmupConfig } from './config.ts';
import { startHelper } from './worker-process.ts';
import { readTasks, writeTasks } from './memory.ts';
import { noticesOf } from './notices.ts';
import { routes } from './routes.ts';
import { Station } from './station.ts';
import { summaryOf } from './task.ts';
import type { Target } from './task.ts';

declare module 'mountkeeper' {
  interface Commands {
    /** Fetches what the target names into the cache as soon as its share can. */
    warmup: { args: [target: Target]; result: void };
  }
}

const LOOK_EVERY_MS = 500;

interface Opened {
  readonly station: Station;
  /** Resolves once everything is on the disk. */
  close(): Promise<void>;
}

async function open(ctx: PluginContext<WarmupConfig>): Promise<Opened> {
  const folder = join(ctx.use('paths').stateDir, 'warmup');
  const [file, lists] = [join(folder, 'tasks.json'), join(folder, 'lists')];
  await rm(lists, { recursive: true, force: true });
  await mkdir(lists, { recursive: true, mode: 0o700 });
  let saving: Promise<void> = Promise.resolve();
  const station = new Station({
    clock: ctx.use('clock'), log: ctx.log, config: () => ctx.config, shares: () => ctx.use('shares').list(),
    folder: lists, start: startHelper, former: await readTasks(file),
    save: (tasks) => {
      saving = saving.then(() => writeTasks(file, tasks)).catch((error: unknown) => ctx.log.error({ file, err: error }, 'state of the warmup not saved'));
    },
  });
  return {
    station,
    close: async () => {
      await station.close();
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
    let station: Station | undefined;
    const opened = (): Station => {
      if (station === undefined) throw Boom.serverUnavailable('The warmup is coming up');
      return station;
    };
    ctx.effect('warm up shares', async () => {
      const { close, ...made } = await open(ctx);
      station = made.station;
      return async () => {
        station = undefined;
        await close();
      };
    });
    ctx.every({ name: 'look which warmup can go on', ms: () => LOOK_EVERY_MS, run: async () => station?.look() });
    ctx.job({
      name: 'scheduled warmup', cron: () => ctx.config.warmup_schedule, timezone: () => (ctx.config.timezone === '' ? undefined : ctx.config.timezone),
      run: async () => {
        const rules = station?.wantRules() ?? 0;
        ctx.log.info({ rules }, 'scheduled warmup begins');
      },
    });
    ctx.handle('warmup', async (target) => opened().ask(target));
    ctx.tap('afterMount', () => station?.look());
    ctx.tap('afterUnmount', () => station?.look());
    ctx.tap('shareHealthChanged', () => station?.look());
    ctx.tap('collectNotices', () => noticesOf(station?.rules ?? []));
    ctx.onConfigChange(() => station?.configure());
    ctx.status('warmup', () => (station?.written ?? []).map(({ target, state, counts }) => ({
      share: target.share, path: target.path, newerThan: target.newerThan, state,
      totalFiles: counts.total, skipped: counts.skipped, cached: counts.cached, errors: counts.errors,
    })));
    ctx.shareStatus((share) => summaryOf((station?.rules ?? []).filter(({ target }) => target.share === share)));
    ctx.route(...routes({ ctx, station: opened }));
    for (const tab of warmupTabs({ ctx, station: opened })) ctx.tab(tab);
    ctx.cli(warmupCommand);
  },
});
