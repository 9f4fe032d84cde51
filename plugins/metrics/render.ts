/** Renders metric families as text, with prom-client. */
import type { Metric, RegistryContentType } from 'prom-client';
import type { HistogramSample, MetricFamily, MetricLabels } from 'mountkeeper';

/** The older format, which every collector reads, and OpenMetrics for those that ask for it. */
export type Format = 'text' | 'openmetrics';

export interface Rendered {
  readonly contentType: string;
  readonly text: string;
}

/** Chosen by the Accept header. Prometheus sends both and prefers OpenMetrics. */
export function formatFor(accept: string | undefined): Format {
  return /\bapplication\/openmetrics-text\b/i.test(accept ?? '') ? 'openmetrics' : 'text';
}

interface Value {
  readonly value: number;
  /** prom-client keeps the text of these for as long as the object lives; others it makes for each line. */
  readonly sharedLabels: Readonly<Record<string, string>>;
  readonly metricName?: string;
}

const NONE: MetricLabels = {};

export async function render(families: readonly MetricFamily[], format: Format): Promise<Rendered> {
  // Loaded at the first scrape, so that a daemon without scrapes starts sooner.
  const { Registry } = await import('prom-client');
  const contentType =
    format === 'openmetrics' ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentType);
  for (const family of families) registry.registerMetric(asMetric(family));
  return { contentType, text: await registry.metrics() };
}

/** The registry needs only a metric's name, type and `get()`; so values need not be set one by one. */
function asMetric(family: MetricFamily): Metric {
  const metric = {
    name: family.name,
    type: family.type,
    // The current name: for OpenMetrics the registry has removed `_total`.
    get: async () => ({ name: metric.name, help: family.help, type: family.type, values: valuesOf(family) }),
  };
  return metric as unknown as Metric;
}

function valuesOf(family: MetricFamily): readonly Value[] {
  if (family.type !== 'histogram')
    return family.samples.map(({ value, labels = NONE }) => ({ value, sharedLabels: labels }));
  return family.samples.flatMap((sample) => histogramValues(family.name, family.buckets, sample));
}

function histogramValues(
  name: string,
  buckets: readonly number[],
  sample: HistogramSample,
): readonly Value[] {
  const { labels = NONE, counts, sum } = sample;
  const bounds = [...buckets.map(String), '+Inf'];
  return [
    ...bounds.map((le, index) => ({
      metricName: `${name}_bucket`,
      sharedLabels: { ...labels, le },
      value: counts[index] ?? 0,
    })),
    { metricName: `${name}_sum`, sharedLabels: labels, value: sum },
    { metricName: `${name}_count`, sharedLabels: labels, value: counts.at(-1) ?? 0 },
  ];
}
