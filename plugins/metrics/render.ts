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

/** One that cannot be written costs no other its place: `leaveOut` is told its name, and why. */
export async function render(
  families: readonly MetricFamily[],
  format: Format,
  leaveOut: (name: string, why: unknown) => void,
): Promise<Rendered> {
  // Loaded at the first scrape, so that a daemon without scrapes starts sooner.
  const { Registry } = await import('prom-client');
  const isOpen = format === 'openmetrics';
  const contentType = isOpen ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentType);
  const written: string[] = [];
  for (const family of families)
    try {
      const metric = asMetric(family, isOpen ? openName(family) : family.name);
      registry.registerMetric(metric as unknown as Metric);
      written.push(await registry.getSingleMetricAsString(metric.name));
    } catch (error) {
      leaveOut(family.name, error);
    }
  return { contentType, text: `${written.join(isOpen ? '\n' : '\n\n')}\n${isOpen ? '# EOF\n' : ''}` };
}

/** OpenMetrics names the family of a counter without the `_total` of its series. */
function openName({ name, type }: MetricFamily): string {
  return type === 'counter' ? name.replace(/_total$/, '') : name;
}

/** The registry needs only a metric's name, type and `get()`; so values need not be set one by one. */
function asMetric(family: MetricFamily, name: string) {
  const { help, type } = family;
  return { name, type, get: async () => ({ name, help, type, values: valuesOf(family) }) };
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
