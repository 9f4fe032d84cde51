/**
 * The contract's part about metrics: figures that every plugin may offer to a monitoring system. Names follow
 * Prometheus: base units in the name (`_bytes`, `_seconds`), counters end in `_total`, labels name things
 * that are few and never a path.
 */

/** Label name → value. A series has exactly the labels that its metric declares. */
export type MetricLabels = Readonly<Record<string, string>>;

export interface MetricSample {
  /** Left out: none. */
  readonly labels?: MetricLabels;
  readonly value: number;
}

interface MetricBase {
  /** Lower case with underscores, such as `garden_beds_watered_total`. One plugin alone may declare it. */
  readonly name: string;
  /** One plain sentence. */
  readonly help: string;
  /** Names of the labels that each series has; default none. */
  readonly labels?: readonly string[];
}

/**
 * A figure that is read when somebody asks for metrics. `read` must be quick and must not wait; it gives one
 * number, or a sample for each series. What is not known is left out, never 0.
 */
export interface ReadMetric extends MetricBase {
  /** `counter`: never falls but by a restart. Default `gauge`. */
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
  /** Upper bounds, rising, in the metric's unit; the last one, infinity, is added. */
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

/** Declares a figure; what is counted or observed gets its handle. */
export interface MetricVerb {
  (metric: ReadMetric): void;
  (metric: CountedMetric): Counter;
  (metric: HistogramMetric): Histogram;
}

/**
 * One series of a histogram. `counts` has one number for each bucket and one for infinity, each with all
 * below it.
 */
export interface HistogramSample {
  readonly labels?: MetricLabels;
  readonly counts: readonly number[];
  readonly sum: number;
}

/** A metric as it reads now, checked and in plain data. */
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
   * Reads each now. One that throws, or gives what its declaration does not allow, is left out and logged
   * once.
   */
  read(): readonly MetricFamily[];
}
