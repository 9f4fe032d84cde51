/**
 * Figures of each share over an hour, a day and a week, with a fixed number of points, kept across
 * restarts.
 */
import type { Clock, StatusRecord } from 'mountkeeper';

/**
 * One point: seconds since the epoch, highest bytes per second, bytes in the cache, and highest number of
 * waiting files in that time.
 */
export type Point = readonly [at: number, speed: number, cache: number, dirty: number];

/** `stepMs`: the time that one point covers. */
export const SPANS = {
  hour: { stepMs: 15_000, points: 240 },
  day: { stepMs: 300_000, points: 288 },
  week: { stepMs: 1_800_000, points: 336 },
} as const;
export type Span = keyof typeof SPANS;
export const SPAN_NAMES = Object.keys(SPANS) as readonly Span[];

type Figures = Readonly<{ speed: number; cacheBytes: number; dirtyCount: number }>;
type ShareSeries = Record<Span, Point[]>;

/** Beyond this many, shares that left the configuration are dropped. */
const MOST_SHARES = 300;

const empty = (): ShareSeries => ({ hour: [], day: [], week: [] });

export class Series {
  readonly #clock: Clock;
  readonly #shares: Map<string, ShareSeries>;

  constructor(clock: Clock, former: ReadonlyMap<string, ShareSeries>) {
    this.#clock = clock;
    this.#shares = new Map(former);
  }

  /** Takes the result of a supervisor cycle. A share that is not mounted has no figures and leaves a gap. */
  sample({ shares }: StatusRecord): void {
    const now = this.#clock.now();
    for (const share of shares.filter(({ mounted }) => mounted)) {
      const series = this.#shares.get(share.name) ?? empty();
      for (const span of SPAN_NAMES) add(series[span], span, now, share);
      this.#shares.set(share.name, series);
    }
    const names = new Set(shares.map(({ name }) => name));
    for (const name of this.#shares.keys())
      if (this.#shares.size > MOST_SHARES && !names.has(name)) this.#shares.delete(name);
  }

  of(share: string, span: Span): readonly Point[] {
    return this.#shares.get(share)?.[span] ?? [];
  }

  all(): Readonly<Record<string, ShareSeries>> {
    return Object.fromEntries(this.#shares);
  }
}

function add(points: Point[], span: Span, now: number, { speed, cacheBytes, dirtyCount }: Figures): void {
  const { stepMs, points: most } = SPANS[span];
  const at = Math.floor(now / stepMs) * (stepMs / 1_000);
  // After the clock was set back, the line would run backwards: what lies ahead goes, the rest is true.
  while ((points.at(-1)?.[0] ?? -Infinity) > at) points.pop();
  const last = points.at(-1);
  if (last?.[0] === at)
    points[points.length - 1] = [
      at,
      Math.max(last[1], Math.round(speed)),
      cacheBytes,
      Math.max(last[3], dirtyCount),
    ];
  else points.push([at, Math.round(speed), cacheBytes, dirtyCount]);
  if (points.length > most) points.shift();
}

/** Parses points of a file that may be damaged. */
export function seriesFrom(read: unknown): ReadonlyMap<string, ShareSeries> {
  if (typeof read !== 'object' || read === null) return new Map();
  return new Map(
    Object.entries(read)
      .slice(0, MOST_SHARES)
      .map(([share, series]) => {
        const given = (typeof series === 'object' && series !== null ? series : {}) as Partial<
          Record<Span, unknown>
        >;
        const points = (span: Span): Point[] =>
          (Array.isArray(given[span]) ? (given[span] as unknown[]) : [])
            .filter(isPoint)
            .slice(-SPANS[span].points);
        return [share, { hour: points('hour'), day: points('day'), week: points('week') }];
      }),
  );
}

function isPoint(value: unknown): value is Point {
  return (
    Array.isArray(value) &&
    value.length === 4 &&
    value.every((one) => typeof one === 'number' && Number.isFinite(one) && one >= 0)
  );
}
