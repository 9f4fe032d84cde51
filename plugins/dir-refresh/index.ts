import { definePlugin, readDescriptions } from 'mountkeeper';
import { refreshCommand } from './cli.ts';
import { effectiveIntervalMs, schema, shareSchema } from './config.ts';
import type { DirRefreshConfig } from './config.ts';
import { createRounds } from './rounds.ts';
import { routes } from './routes.ts';
import { createShareRefresher } from './share-refresher.ts';
import { refreshTab } from './tab.ts';

declare module 'mountkeeper' {
  interface ShareStatus {
    /** It has an interval, its own or the one of all. */
    dirRefreshActive: boolean;
    /** Milliseconds since the epoch; null when never. */
    lastDirRefreshAt: number | null;
    lastDirRefreshDirsOk: number;
    lastDirRefreshDirsFailed: number;
  }
}

const LOOK_EVERY_MS = 1_000;

export default definePlugin<DirRefreshConfig>({
  name: 'dir-refresh',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Refreshes folder listings at an interval, so that changes made elsewhere become visible.',
  requires: ['shares'],
  config: {
    section: 'dir_refresh',
    schema,
    share: shareSchema,
    descriptions: readDescriptions(import.meta.url),
  },
  register(ctx) {
    const intervalMs = (share: string): number =>
      effectiveIntervalMs(ctx.use('config').current.config, share);
    const shares = () => ctx.use('shares').list();
    const refresher = ctx.provide('directoryRefresher', () => {
      const clock = ctx.use('clock');
      const own = createShareRefresher({
        clock,
        log: ctx.log,
        shares,
        recursive: () => ctx.config.recursive,
        signal: ctx.signal,
      });
      const rounds = createRounds({
        clock,
        log: ctx.log,
        shares,
        refresher: own,
        intervalMs,
        random: Math.random,
      });
      return Object.assign(own, { rounds });
    });
    ctx.every({
      name: 'look which share is due',
      ms: () => LOOK_EVERY_MS,
      run: async () => refresher()?.rounds.look(),
    });
    ctx.shareStatus({
      defaults: {
        dirRefreshActive: false,
        lastDirRefreshAt: null,
        lastDirRefreshDirsOk: 0,
        lastDirRefreshDirsFailed: 0,
      },
      read: (share) => {
        const record = refresher()?.records.get(share);
        const active = { dirRefreshActive: intervalMs(share) > 0 };
        return record === undefined
          ? active
          : {
              ...active,
              lastDirRefreshAt: record.at,
              lastDirRefreshDirsOk: record.ok,
              lastDirRefreshDirsFailed: record.failed,
            };
      },
    });
    ctx.route(...routes(ctx));
    ctx.tab(refreshTab(ctx));
    ctx.cli(refreshCommand);
  },
});
