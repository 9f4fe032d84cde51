import { join } from 'node:path';
import type { PluginContext } from 'mountkeeper';
import { createAttempt } from './attempt.ts';
import type { WebhooksConfig } from './config.ts';
import { Lookout } from './lookout.ts';
import { createSaver, readMemory } from './memory.ts';
import { Outbox } from './outbox.ts';

/** The living half of the plugin. */
export interface Station {
  readonly outbox: Outbox;
  readonly lookout: Lookout;
  /** All that is to be kept is on the disk. */
  settled(): Promise<void>;
}

/** Takes up where the former daemon left off. */
export async function openStation(ctx: PluginContext<WebhooksConfig>): Promise<Station> {
  const file = join(ctx.use('paths').stateDir, 'webhooks', 'deliveries.json');
  const former = await readMemory(file, ctx.log);
  const clock = ctx.use('clock');
  const isOn = (): boolean => ctx.config.webhook_url !== '';
  const saver = createSaver(file, () => ({ version: 1, deliveries: outbox.deliveries, crossed: lookout.crossed }), ctx.log);
  const outbox: Outbox = new Outbox({
    clock, log: ctx.log, isOn, signal: ctx.signal, random: Math.random,
    attempt: createAttempt({ clock, secrets: ctx.use('secrets'), config: () => ctx.config }),
    onChange: () => saver.save(),
    saved: () => saver.settled(),
  }, former.deliveries);
  const lookout: Lookout = new Lookout({
    clock,
    cache: () => ctx.use('config').current.config.cache,
    limits: () => ({ writebackDepth: isOn() ? ctx.config.writeback_depth : 0, cacheThresholdPct: isOn() ? ctx.config.cache_threshold_pct : 0 }),
    add: (event) => void outbox.add(event),
    onChange: () => saver.save(),
  }, former.crossed);
  return { outbox, lookout, settled: () => saver.settled() };
}
