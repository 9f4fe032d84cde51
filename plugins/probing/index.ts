import { availableParallelism } from 'node:os';
import { definePlugin, durationMs } from 'mountkeeper';
import { schema } from './config.ts';
import { createPlaces } from './slots.ts';
import { createProber } from './prober.ts';

/** By then a probe has started and only waits for its remote. */
const STARTED_MS = 400;

export default definePlugin({
  name: 'probing',
  version: '1.0.0',
  apiVersion: 1,
  description: "Lists a share's remote path before it is mounted.",
  requires: ['mounter'],
  config: { section: 'probe', schema },
  register(ctx) {
    ctx.provide('prober', () => {
      const clock = ctx.use('clock');
      return createProber({
        clock,
        mounter: () => ctx.use('mounter'),
        places: createPlaces(2 * availableParallelism(), STARTED_MS, clock),
        timeoutMs: () => durationMs(ctx.config.timeout),
      });
    });
  },
});
