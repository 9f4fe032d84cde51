/**
 * The metrics of all active plugins, for monitoring systems. Each is read separately: an unusable one is
 * left out, and the log names the problem once until it changes.
 */
import type { Logger } from 'pino';
import type { MetricFamily, MetricsService } from '../contract/metrics.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import type { Ledger } from './instance/ledger.ts';

export interface MetricReadingsOptions {
  /** Ledgers of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  readonly log: Logger;
}

export function createMetricReadings({ ledgers, log }: MetricReadingsOptions): MetricsService {
  const told = new Map<string, string>();
  /** Those read well that could not be shown; kept apart, since each reading ends the other kind. */
  const toldUnshown = new Map<string, string>();
  const refuse = (plugin: string, metric: string, why: unknown, before = told): void => {
    const reason = reasonOf(why);
    if (before.get(metric) === reason) return;
    before.set(metric, reason);
    log.error({ plugin, metric, reason }, 'what the plugin gives as a metric cannot be used and is left out');
  };
  return {
    read: () =>
      ledgers().flatMap(({ plugin, metrics }) =>
        metrics.flatMap((metric): readonly MetricFamily[] => {
          try {
            const family = metric.read();
            told.delete(metric.name);
            return [family];
          } catch (error) {
            refuse(plugin, metric.name, error);
            return [];
          }
        }),
      ),
    leftOut: (name, why) => {
      const owner = ledgers().find(({ metrics }) => metrics.some((metric) => metric.name === name));
      if (owner) refuse(owner.plugin, name, why, toldUnshown);
    },
  };
}
