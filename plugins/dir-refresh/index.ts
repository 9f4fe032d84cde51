import { definePlugin } from 'mountkeeper';
import { refreshCommand } from './cli.ts';
import { effectiveIntervalMs, schema, shareSchema } from './config.ts';
import type { DirRefreshConfig } from './config.ts';
import { createRounds } from './rounds.ts';
import { routes } from './routes.ts';
import { createShareRefresher } from './share-refresher.ts';
import type { ShareRefresher } from './share-refresher.ts';
import { refreshTab } from './tab.ts';

const LOOK_EVERY_MS = 1_000;

export default definePlugin<DirRefreshConfig>({
  name: 'dir-refresh',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Reads folder listings anew at an interval, so that changes made elsewhere show.',
  requires: ['shares'],
  config: { section: 'dir_refresh', schema, share: shareSchema },
  register(ctx) {
    let refresher: ShareRefresher | undefined;
    let rounds: ReturnType<typeof createRounds> | undefined;
    const intervalMs = (share: string): number =>
      effectiveIntervalMs(ctx.use('config').current.config, share);
    ctx.provide('directoryRefresher', () => {
      const clock = ctx.use('clock');
      const shares = () => ctx.use('shares').list();
      refresher = createShareRefresher({
        clock,
        log: ctx.log,
        shares,
        recursive: () => ctx.config.recursive,
        signal: ctx.signal,
      });
      rounds = createRounds({ clock, log: ctx.log, shares, refresher, intervalMs, random: Math.random });
      return refresher;
    });
    ctx.every({ name: 'look which share is due', ms: () => LOOK_EVERY_MS, run: async () => rounds?.look() });
    ctx.shareStatus((share) => {
      const record = refresher?.records.get(share);
      return {
        dirRefreshActive: intervalMs(share) > 0,
        lastDirRefreshAt: record?.at ?? null,
        lastDirRefreshDirsOk: record?.ok ?? 0,
        lastDirRefreshDirsFailed: record?.failed ?? 0,
      };
    });
    ctx.route(...routes(ctx));
    ctx.tab(refreshTab(ctx));
    ctx.cli(refreshCommand);
  },
});
