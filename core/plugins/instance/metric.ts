/** What `ctx.metric` declares: checked once, then read as one family of series. */
import type {
  Counter,
  Histogram,
  Metric,
  MetricFamily,
  MetricLabels,
  MetricSample,
  ReadMetric,
} from '../../contract/metrics.ts';

/** More series than this cost a monitoring system more than they are worth. */
export const MOST_SERIES = 5_000;
/** Of a label's value, in characters: it stands in each scrape, and what is longer names no thing. */
const LONGEST_LABEL = 500;
const NAME = /^[a-z][a-z0-9_]*$/;
const TYPES: ReadonlySet<unknown> = new Set(['gauge', 'counter', 'histogram']);

export interface DeclaredMetric {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  readonly labels: readonly string[];
  /** All that it is called where it is shown; no other metric may have one of these. */
  readonly shownAs: readonly string[];
  /** Throws what the plugin throws, or a sentence about an invalid value. */
  read(): MetricFamily;
}

function demand(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Error(sentence);
}

/**
 * The declared metric, and the counter or histogram for the plugin. Throws a sentence about a wrong
 * declaration.
 */
export function declareMetric(metric: Metric): {
  readonly declared: DeclaredMetric;
  readonly handle: unknown;
} {
  const { name, help, type = 'gauge', labels = [] } = metric;
  demand(
    typeof name === 'string' && NAME.test(name),
    'ctx.metric() needs a name of lower-case letters, digits and underscores',
  );
  demand(TYPES.has(type), `the type of ctx.metric("${name}") must be gauge, counter or histogram`);
  demand(typeof help === 'string', `ctx.metric("${name}") needs a help text`);
  const shownAs = namesOf(name, type);
  // What renders metrics looks their names up in an object, where it would find these.
  const taken = shownAs.find((one) => one in Object.prototype);
  demand(taken === undefined, `ctx.metric("${name}") cannot be called "${taken}"; choose another name`);
  const areNames =
    Array.isArray(labels) &&
    labels.every((label) => typeof label === 'string' && NAME.test(label) && label !== 'le');
  demand(areNames, `the labels of ctx.metric("${name}") must be lower-case names`);
  demand(
    type !== 'counter' || name.endsWith('_total'),
    `the name of the counter ctx.metric("${name}") must end in _total`,
  );
  const base = { name, help, labels: Object.freeze([...labels].sort((a, b) => (a < b ? -1 : 1))), shownAs };
  if (metric.type === 'histogram') return observed(base, metric.buckets);
  if (typeof metric.read === 'function')
    return { declared: readable(base, metric as ReadMetric), handle: undefined };
  demand(metric.type === 'counter', `ctx.metric("${name}") lacks a function that reads it`);
  return counted(base);
}

/** Its own, that of its family, and those of its series: monitoring drops every figure where one is there twice. */
function namesOf(name: string, type: MetricFamily['type']): readonly string[] {
  if (type === 'counter') return [name, name.replace(/_total$/, '')];
  return type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

type Base = Pick<DeclaredMetric, 'name' | 'help' | 'labels' | 'shownAs'>;

function readable(base: Base, metric: ReadMetric): DeclaredMetric {
  const { type = 'gauge' } = metric;
  const read = (): MetricFamily => {
    const given: unknown = metric.read();
    const samples = typeof given === 'number' ? [{ value: given }] : given;
    demand(
      Array.isArray(samples) && samples.length <= MOST_SERIES,
      `needs a number, or at most ${MOST_SERIES} samples`,
    );
    return {
      name: base.name,
      help: base.help,
      type,
      samples: distinct(samples.map((sample) => checked(base, sample as MetricSample))),
    };
  };
  return { ...base, type, read };
}

function checked({ labels }: Base, sample: MetricSample): MetricSample {
  const { value, labels: given } = sample;
  demand(typeof value === 'number', 'needs a number as the value of each sample');
  return { value, labels: exactly(labels, given) };
}

/** Copies of labels that can never change, so that a thousand series of as many scrapes share them. */
const copies = new WeakMap<MetricLabels, MetricLabels>();

/** A copy with exactly the declared labels, in their order; of frozen ones always the same. */
function exactly(names: readonly string[], given: MetricLabels = {}): MetricLabels {
  const known = copies.get(given);
  if (known && hasNames(known, names)) return known;
  const labels = copied(names, given);
  if (Object.isFrozen(given)) copies.set(given, labels);
  return labels;
}

function hasNames(labels: MetricLabels, names: readonly string[]): boolean {
  const own = Object.keys(labels);
  return own.length === names.length && own.every((name, index) => name === names[index]);
}

function copied(names: readonly string[], given: MetricLabels): MetricLabels {
  const labels: Record<string, string> = {};
  let isExact = Object.keys(given).length === names.length;
  for (const name of names) {
    const value: unknown = given[name];
    if (typeof value === 'string') labels[name] = value;
    else isExact = false;
    if (typeof value === 'string' && value.length > LONGEST_LABEL)
      throw new Error(`gives a label ${name} of more than ${LONGEST_LABEL} characters`);
  }
  if (!isExact) throw new Error(`needs exactly the labels ${names.join(', ') || '(none)'}, each a text`);
  return labels;
}

/** Monitoring systems refuse all series when two have the same labels. */
function distinct<T extends { readonly labels?: MetricLabels }>(samples: readonly T[]): readonly T[] {
  const keys = new Set(samples.map(({ labels = {} }) => keyOf(labels)));
  demand(keys.size === samples.length, 'gives two samples with the same labels');
  return samples;
}

function keyOf(labels: MetricLabels): string {
  return Object.values(labels).join('\0');
}

/** Series by their labels, created at the first write. */
class Series<T> {
  readonly #names: readonly string[];
  readonly #make: (labels: MetricLabels) => T;
  readonly #byKey = new Map<string, T>();

  constructor(names: readonly string[], make: (labels: MetricLabels) => T) {
    this.#names = names;
    this.#make = make;
    // Without labels there is one series from the start, because counters begin at 0.
    if (names.length === 0) this.of();
  }

  of(given?: MetricLabels): T {
    const labels = exactly(this.#names, given);
    const key = keyOf(labels);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    demand(this.#byKey.size < MOST_SERIES, `has ${MOST_SERIES} series already`);
    const made = this.#make(labels);
    this.#byKey.set(key, made);
    return made;
  }

  all(): readonly T[] {
    return [...this.#byKey.values()];
  }
}

function counted(base: Base): { declared: DeclaredMetric; handle: Counter } {
  const series = new Series(base.labels, (labels) => ({ labels, value: 0 }));
  const handle: Counter = {
    add: (by = 1, labels) => {
      demand(Number.isFinite(by) && by >= 0, `the counter ${base.name} takes numbers from 0 on`);
      series.of(labels).value += by;
    },
  };
  const { name, help } = base;
  const read = (): MetricFamily => ({
    name,
    help,
    type: 'counter',
    samples: series.all().map((one) => ({ ...one })),
  });
  return { declared: { ...base, type: 'counter', read }, handle };
}

function observed(base: Base, given: readonly number[]): { declared: DeclaredMetric; handle: Histogram } {
  const isRising =
    Array.isArray(given) &&
    given.length > 0 &&
    given.every((bound, index) => Number.isFinite(bound) && bound > (given[index - 1] ?? -Infinity));
  demand(isRising, `the buckets of ctx.metric("${base.name}") must be rising numbers`);
  const buckets = Object.freeze([...given]);
  const series = new Series(base.labels, (labels) => ({
    labels,
    counts: Array.from({ length: buckets.length + 1 }, () => 0),
    sum: 0,
  }));
  const handle: Histogram = {
    observe: (value, labels) => {
      demand(Number.isFinite(value), `the histogram ${base.name} takes finite numbers`);
      const one = series.of(labels);
      one.sum += value;
      one.counts.forEach((_, index) => {
        if (value <= (buckets[index] ?? Infinity)) one.counts[index]! += 1;
      });
    },
  };
  const { name, help } = base;
  const read = (): MetricFamily => ({
    name,
    help,
    type: 'histogram',
    buckets,
    samples: series.all().map((one) => ({ ...one, counts: [...one.counts] })),
  });
  return { declared: { ...base, type: 'histogram', read }, handle };
}
