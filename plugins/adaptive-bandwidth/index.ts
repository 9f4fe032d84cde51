import { definePlugin, durationMs, readDescriptions, withRelease } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { AdaptiveLimit } from './adaptive-limit.ts';
import { schema } from './config.ts';
import type { AdaptiveBandwidthConfig } from './config.ts';

const LOOK_EVERY_MS = 500;

/** Undefined while it is switched off. */
function create(ctx: PluginContext<AdaptiveBandwidthConfig>): AdaptiveLimit | undefined {
  return ctx.config.adaptive
    ? new AdaptiveLimit({
        clock: ctx.use('clock'),
        log: ctx.log,
        shares: () => ctx.use('shares').list(),
        sampleMs: () => durationMs(ctx.config.adaptive_interval),
      })
    : undefined;
}

export default definePlugin<AdaptiveBandwidthConfig>({
  name: 'adaptive-bandwidth',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Lowers the upload limit while the line is congested, and raises it again.',
  requires: ['shares'],
  config: { section: 'bandwidth', schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const line = ctx.effect('judge the line', () => withRelease({ limit: create(ctx) }, () => undefined));
    const limit = (): AdaptiveLimit | undefined => line()?.limit;
    ctx.onConfigChange((next, previous) => {
      const now = line();
      if (now && next.adaptive !== previous.adaptive) now.limit = create(ctx);
    });
    ctx.every({
      name: 'look at the uploads',
      ms: () => (ctx.config.adaptive ? LOOK_EVERY_MS : 0),
      run: async () => limit()?.look(),
    });
    ctx.tap('resolveBandwidth', (budget) => ({
      ...budget,
      up: limit()?.limitFor(budget.up) ?? budget.up,
    }));
    ctx.tap('collectNotices', () => {
      const message = limit()?.notice;
      return message === undefined ? [] : [{ level: 'info' as const, message }];
    });
    ctx.metric({
      name: 'mountkeeper_adaptive_upload_limit_bytes',
      help: 'Upload limit that the line bears, bytes per second; 0 is unlimited.',
      read: () => limit()?.current ?? 0,
    });
  },
});
