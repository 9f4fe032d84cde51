import { definePlugin, durationMs } from 'mountkeeper';
import { AdaptiveLimit } from './adaptive-limit.ts';
import { schema } from './config.ts';
import type { AdaptiveBandwidthConfig } from './config.ts';

const LOOK_EVERY_MS = 500;

export default definePlugin<AdaptiveBandwidthConfig>({
  name: 'adaptive-bandwidth',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Lowers the upload limit while the line is congested, and raises it again.',
  requires: ['shares'],
  config: { section: 'bandwidth', schema },
  register(ctx) {
    let limit: AdaptiveLimit | undefined;
    const create = (): AdaptiveLimit | undefined => {
      const shares = () => ctx.use('shares').list();
      return ctx.config.adaptive
        ? new AdaptiveLimit({
            clock: ctx.use('clock'),
            log: ctx.log,
            shares,
            sampleMs: () => durationMs(ctx.config.adaptive_interval),
          })
        : undefined;
    };
    ctx.effect('judge the line', () => {
      limit = create();
      return () => {
        limit = undefined;
      };
    });
    ctx.onConfigChange((next, previous) => {
      if (next.adaptive !== previous.adaptive) limit = create();
    });
    ctx.every({
      name: 'look at the uploads',
      ms: () => (ctx.config.adaptive ? LOOK_EVERY_MS : 0),
      run: async () => limit?.look(),
    });
    ctx.tap('resolveBandwidth', (budget) => (limit ? { ...budget, up: limit.limitFor(budget.up) } : budget));
    ctx.tap('collectNotices', () =>
      limit?.notice === undefined ? [] : [{ level: 'info' as const, message: limit.notice }],
    );
    ctx.metric({
      name: 'mountkeeper_adaptive_upload_limit_bytes',
      help: 'Upload limit that the line bears, bytes per second; 0 is unlimited.',
      read: () => limit?.current ?? 0,
    });
  },
});
