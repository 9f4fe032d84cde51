/**
 * Metrics counted as things happen: failures and recoveries of shares, supervisor cycles, delay of the
 * event loop.
 */
import type { PluginContext } from 'mountkeeper';

const LOOK_EVERY_MS = 1_000;
const CYCLE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1, 2.5, 10];
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export function countEvents(ctx: PluginContext): void {
  countHealth(ctx);
  const cycles = ctx.metric({
    type: 'histogram',
    name: 'mountkeeper_cycle_seconds',
    help: 'How long a cycle of the supervisor took, without the plugins that it tells.',
    buckets: CYCLE_BUCKETS,
  });
  ctx.tap('afterCycle', (_, tookMs) => {
    if (tookMs !== undefined) cycles.observe(tookMs / 1000);
  });
  const delays = ctx.metric({
    type: 'histogram',
    name: 'mountkeeper_event_loop_delay_seconds',
    help: 'How late a timer of one second came.',
    buckets: DELAY_BUCKETS,
  });
  let dueMs: number | undefined;
  ctx.every({
    name: 'look how late the event loop is',
    ms: () => LOOK_EVERY_MS,
    run: async () => {
      const nowMs = ctx.use('clock').monotonic();
      if (dueMs !== undefined) delays.observe(Math.max(0, nowMs - dueMs) / 1000);
      dueMs = nowMs + LOOK_EVERY_MS;
    },
  });
}

function countHealth(ctx: PluginContext): void {
  const failures = ctx.metric({
    type: 'counter',
    name: 'mountkeeper_share_failures_total',
    help: 'How often the share has failed: lost its mount, or could not be mounted.',
    labels: ['share'],
  });
  const heals = ctx.metric({
    type: 'counter',
    name: 'mountkeeper_share_heals_total',
    help: 'How often the share has come back by itself after it had failed.',
    labels: ['share'],
  });
  const failed = new Set<string>();
  // Starts at 0, because otherwise the first failure would not be an increase.
  ctx.tap('afterCycle', ({ record }) => {
    for (const { name } of record.shares)
      [failures, heals].forEach((counter) => counter.add(0, { share: name }));
  });
  ctx.tap('shareHealthChanged', ({ share, to }) => {
    if (to === 'failed') {
      failures.add(1, { share });
      failed.add(share);
    }
    if (to === 'healthy' && failed.delete(share)) heals.add(1, { share });
  });
}
