/**
 * The metrics of all active plugins, for monitoring systems. Each is read separately: an unusable one is
 * left out, and the log names the problem once until it changes.
 */
import type { Logger } from 'pino';
import type { MetricFamily, MetricsService } from '../contract/metrics.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import type { Ledger } from './instance/ledger.ts';
import { MOST_SERIES } from './instance/metric.ts';

const TOO_MANY =
  `gives more than ${MOST_SERIES} series with the plugin's metrics before it; ` +
  'it and those behind it are left out';

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
  const ofPlugin = ({ plugin, metrics, routePrefix }: Ledger): readonly MetricFamily[] => {
    const families: MetricFamily[] = [];
    // Those that come with Mountkeeper have some for each share, however many there are.
    let left = routePrefix === '' ? Infinity : MOST_SERIES;
    for (const metric of metrics) {
      try {
        const family = metric.read();
        left -= seriesOf(family);
        if (left < 0) throw new Error(TOO_MANY);
        told.delete(metric.name);
        families.push(family);
      } catch (error) {
        refuse(plugin, metric.name, error);
      }
      // What comes behind costs a scrape nothing.
      if (left < 0) break;
    }
    return families;
  };
  return {
    read: () => ledgers().flatMap(ofPlugin),
    leftOut: (name, why) => {
      const owner = ledgers().find(({ metrics }) => metrics.some((metric) => metric.name === name));
      if (owner) refuse(owner.plugin, name, why, toldUnshown);
    },
  };
}

function seriesOf(family: MetricFamily): number {
  return family.samples.length * (family.type === 'histogram' ? family.buckets.length + 1 : 1);
}
