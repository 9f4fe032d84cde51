import { availableParallelism } from 'node:os';
import { createSemaphore, definePlugin, durationMs, readDescriptions } from 'mountkeeper';
import { schema } from './config.ts';
import { createConnectionMonitors } from './connection-monitor.ts';
import { createProber } from './prober.ts';

/** After this time a probe has started and only waits for its remote. */
const STARTED_MS = 400;

export default definePlugin({
  name: 'probing',
  version: '1.0.0',
  apiVersion: 1,
  description: "Lists a share's remote path before it is mounted, and knows whether a NAS is there.",
  requires: ['mounter'],
  config: { section: 'probe', schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    ctx.provide('connections', () => createConnectionMonitors(ctx.use('clock')));
    ctx.provide('prober', () => {
      const clock = ctx.use('clock');
      return createProber({
        clock,
        mounter: () => ctx.use('mounter'),
        connections: () => ctx.use('connections'),
        places: createSemaphore({ places: 2 * availableParallelism(), heldAtMostMs: STARTED_MS, clock }),
        timeoutMs: () => durationMs(ctx.config.timeout),
      });
    });
  },
});
