/** Families of metrics as text, by prom-client. */
import type { Metric, RegistryContentType } from 'prom-client';
import type { HistogramSample, MetricFamily, MetricLabels } from 'mountkeeper';

/** The older format, which every collector reads, and OpenMetrics for those that ask for it. */
export type Format = 'text' | 'openmetrics';

export interface Rendered {
  readonly contentType: string;
  readonly text: string;
}

/** What a collector says it takes. Prometheus names both and wants OpenMetrics. */
export function formatFor(accept: string | undefined): Format {
  return /\bapplication\/openmetrics-text\b/i.test(accept ?? '') ? 'openmetrics' : 'text';
}

interface Value {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly metricName?: string;
}

export async function render(families: readonly MetricFamily[], format: Format): Promise<Rendered> {
  // Loaded at the first scrape: a daemon that nobody scrapes starts sooner.
  const { Registry } = await import('prom-client');
  const contentType =
    format === 'openmetrics' ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentType);
  for (const family of families) registry.registerMetric(asMetric(family));
  return { contentType, text: await registry.metrics() };
}

/** A registry asks a metric for nothing but its name, its type and `get()`; so no value is set one by one. */
function asMetric(family: MetricFamily): Metric {
  const metric = {
    name: family.name,
    type: family.type,
    // By its name of now: for OpenMetrics the registry has taken `_total` off.
    get: async () => ({ name: metric.name, help: family.help, type: family.type, values: valuesOf(family) }),
  };
  return metric as unknown as Metric;
}

function valuesOf(family: MetricFamily): readonly Value[] {
  if (family.type !== 'histogram') return family.samples.map(({ value, labels = {} }) => ({ value, labels }));
  return family.samples.flatMap((sample) => histogramValues(family.name, family.buckets, sample));
}

function histogramValues(
  name: string,
  buckets: readonly number[],
  sample: HistogramSample,
): readonly Value[] {
  const { labels = {} as MetricLabels, counts, sum } = sample;
  const bounds = [...buckets.map(String), '+Inf'];
  return [
    ...bounds.map((le, index) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le },
      value: counts[index] ?? 0,
    })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: counts.at(-1) ?? 0 },
  ];
}
