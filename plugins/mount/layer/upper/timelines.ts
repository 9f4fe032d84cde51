/** What was at each path, one value after the other, as far as somebody has held it. */
interface Span<T> {
  readonly value: T;
  /** What was seen later may be another; milliseconds since the epoch. */
  untilMs: number;
  holders: number;
}

export class Timelines<T> {
  readonly #spans = new Map<string, Span<T>[]>();
  readonly #isSame: (a: T, b: T) => boolean;

  constructor(isSame: (a: T, b: T) => boolean) {
    this.#isSame = isSame;
  }

  /** How many values are held, over all paths. */
  get size(): number {
    return [...this.#spans.values()].reduce((sum, spans) => sum + spans.length, 0);
  }

  /** The first value that somebody could have seen at that time or later; undefined for the one of now. */
  at(path: string, ms: number): T | undefined {
    return this.#spans.get(path)?.find(({ untilMs }) => ms <= untilMs)?.value;
  }

  /** Holds what is there now, until the returned function is called with the time of the end. */
  hold(path: string, value: T): (nowMs: number) => void {
    const spans = this.#spans.get(path) ?? [];
    const last = spans.at(-1);
    // Held again and again without a change, it takes no more room.
    const span = last && this.#isSame(last.value, value) ? last : { value, untilMs: 0, holders: 0 };
    if (span !== last) this.#spans.set(path, [...spans, span]);
    span.holders += 1;
    span.untilMs = Infinity;
    return (nowMs) => {
      span.holders -= 1;
      if (span.holders === 0) span.untilMs = nowMs;
    };
  }

  /** Forgets what ended before that time, but at the paths in use. */
  drop(beforeMs: number, inUse: ReadonlySet<string> = new Set()): void {
    for (const [path, spans] of this.#spans) {
      if (inUse.has(path)) continue;
      const left = spans.filter(({ untilMs }) => untilMs >= beforeMs);
      if (left.length > 0) this.#spans.set(path, left);
      else this.#spans.delete(path);
    }
  }
}
