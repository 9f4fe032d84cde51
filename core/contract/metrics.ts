/**
 * Contract of metrics: figures that every plugin may offer to a monitoring system. Names follow Prometheus:
 * base units in the name (`_bytes`, `_seconds`), counters end in `_total`, labels have few values and are
 * never paths.
 */

/** Label name → value. A series has exactly the labels that its metric declares. */
export type MetricLabels = Readonly<Record<string, string>>;

export interface MetricSample {
  /** Default: no labels. */
  readonly labels?: MetricLabels;
  readonly value: number;
}

interface MetricBase {
  /**
   * Lower case with underscores, such as `garden_beds_watered_total`. One plugin alone may declare it, or another
   * metric of its family: to OpenMetrics that counter is the family `garden_beds_watered`.
   */
  readonly name: string;
  /** One plain sentence. */
  readonly help: string;
  /** Names of the labels that each series has; default none. */
  readonly labels?: readonly string[];
}

/**
 * A figure that is read at each scrape. `read` must be quick and synchronous; it returns one number, or a
 * sample for each series. Unknown figures are left out, never 0.
 */
export interface ReadMetric extends MetricBase {
  /** `counter`: falls only at a restart. Default `gauge`. */
  readonly type?: 'gauge' | 'counter';
  read(): number | readonly MetricSample[];
}

/** Counted by the plugin as things happen: `ctx.metric` returns the counter. */
export interface CountedMetric extends MetricBase {
  readonly type: 'counter';
  readonly read?: undefined;
}

/** Observed by the plugin as things happen: `ctx.metric` returns the histogram. */
export interface HistogramMetric extends MetricBase {
  readonly type: 'histogram';
  /** Upper bounds in ascending order, in the metric's unit; the bucket for infinity is added. */
  readonly buckets: readonly number[];
}

export type Metric = ReadMetric | CountedMetric | HistogramMetric;

export interface Counter {
  /** Throws on a number below 0 and on labels that the metric does not declare. */
  add(by?: number, labels?: MetricLabels): void;
}

export interface Histogram {
  /** Throws on what is no number and on labels that the metric does not declare. */
  observe(value: number, labels?: MetricLabels): void;
}

/** Declares a metric; counted and observed ones return their counter or histogram. */
export interface MetricVerb {
  (metric: ReadMetric): void;
  (metric: CountedMetric): Counter;
  (metric: HistogramMetric): Histogram;
}

/**
 * One series of a histogram. `counts` holds one number per bucket and one for infinity; each is cumulative.
 */
export interface HistogramSample {
  readonly labels?: MetricLabels;
  readonly counts: readonly number[];
  readonly sum: number;
}

/** A metric with its current values, checked, as plain data. */
export type MetricFamily = {
  readonly name: string;
  readonly help: string;
} & (
  | { readonly type: 'gauge' | 'counter'; readonly samples: readonly MetricSample[] }
  | {
      readonly type: 'histogram';
      readonly buckets: readonly number[];
      readonly samples: readonly HistogramSample[];
    }
);

/** All metrics of all active plugins. */
export interface MetricsService {
  /**
   * Reads each metric now. One that throws, or returns what its declaration does not allow, is left out and
   * logged once.
   */
  read(): readonly MetricFamily[];
  /** Of whoever shows them: that one cannot be shown, and why. The log names its plugin, once until that changes. */
  leftOut(name: string, why: unknown): void;
}
