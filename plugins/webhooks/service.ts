import { join } from 'node:path';
import type { PluginContext } from 'mountkeeper';
import { createAttempt } from './delivery/attempt.ts';
import type { WebhooksConfig } from './config.ts';
import { StatusEvents } from './events/status-events.ts';
import { createSaver, readMemory } from './delivery/saved-state.ts';
import { Outbox } from './delivery/outbox.ts';

/** The plugin's runtime. */
export interface WebhookService {
  readonly outbox: Outbox;
  readonly statusEvents: StatusEvents;
  /** Resolves when everything is on disk. */
  settled(): Promise<void>;
}

/** Continues where the former daemon stopped. */
export async function openService(ctx: PluginContext<WebhooksConfig>): Promise<WebhookService> {
  const file = join(ctx.use('paths').stateDir, 'webhooks', 'deliveries.json');
  const former = await readMemory(file, ctx.log);
  const clock = ctx.use('clock');
  const isOn = (): boolean => ctx.config.webhook_url !== '';
  const saver = createSaver(
    file,
    () => ({ version: 1, deliveries: outbox.deliveries, crossed: statusEvents.crossed }),
    ctx.log,
  );
  const outbox: Outbox = new Outbox(
    {
      clock,
      log: ctx.log,
      isOn,
      signal: ctx.signal,
      random: Math.random,
      attempt: createAttempt({
        clock,
        secrets: ctx.use('secrets'),
        formats: ctx.use('webhookFormats'),
        config: () => ctx.config,
      }),
      onChange: () => saver.save(),
      saved: () => saver.settled(),
    },
    former.deliveries,
  );
  const statusEvents: StatusEvents = new StatusEvents(
    {
      clock,
      cache: () => ctx.use('config').current.config.cache,
      limits: () => ({
        writebackDepth: isOn() ? ctx.config.writeback_depth : 0,
        cacheThresholdPct: isOn() ? ctx.config.cache_threshold_pct : 0,
      }),
      add: (event) => void outbox.add(event),
      onChange: () => saver.save(),
    },
    former.crossed,
  );
  return { outbox, statusEvents: statusEvents, settled: () => saver.settled() };
}
