/** Percentages of the limit at which a full cache is reported. */
export const THRESHOLDS = [80, 95] as const;
/** Percentage points that it must fall below a threshold before it can pass it again. */
const HYSTERESIS = 5;

export type Threshold = (typeof THRESHOLDS)[number];

/** How full a cache is. */
export interface Fill {
  /** The share, or `''` for the file system that all caches lie on. */
  readonly name: string;
  /** Undefined while it is unknown. */
  readonly usedBytes: number | undefined;
  readonly limitBytes: number;
}

export interface Passing {
  readonly fill: Fill;
  readonly threshold: Threshold;
  readonly percent: number;
  /** False when it has fallen below the threshold. */
  readonly isUp: boolean;
}

/** Thresholds that caches have passed, by name. */
export type Passed = Readonly<Record<string, readonly number[]>>;

/** Remembers passed thresholds, so that each crossing is reported once. */
export class FillLevels {
  readonly #passed: Map<string, ReadonlySet<Threshold>>;

  constructor(former: Passed = {}) {
    this.#passed = new Map(
      Object.entries(former).map(
        ([name, thresholds]) =>
          [name, new Set(THRESHOLDS.filter((one) => thresholds.includes(one)))] as const,
      ),
    );
  }

  /** To be saved for the next daemon. */
  get passed(): Passed {
    return Object.fromEntries(
      [...this.#passed]
        .filter(([, thresholds]) => thresholds.size > 0)
        .map(([name, thresholds]) => [name, [...thresholds]] as const),
    );
  }

  /** Crossings since the last call, lowest threshold first. Caches that are not in the list are forgotten. */
  look(fills: readonly Fill[]): readonly Passing[] {
    const names = new Set(fills.map(({ name }) => name));
    for (const gone of [...this.#passed.keys()].filter((name) => !names.has(name))) this.#passed.delete(gone);
    return fills.flatMap((fill) => this.#judge(fill));
  }

  #judge(fill: Fill): readonly Passing[] {
    if (fill.usedBytes === undefined || fill.limitBytes <= 0) return [];
    const percent = (fill.usedBytes / fill.limitBytes) * 100;
    const was = this.#passed.get(fill.name) ?? new Set<Threshold>();
    const is = new Set(
      THRESHOLDS.filter((threshold) => percent >= threshold - (was.has(threshold) ? HYSTERESIS : 0)),
    );
    this.#passed.set(fill.name, is);
    return THRESHOLDS.filter((threshold) => was.has(threshold) !== is.has(threshold)).map((threshold) => ({
      fill,
      threshold,
      percent: Math.floor(percent),
      isUp: is.has(threshold),
    }));
  }
}
