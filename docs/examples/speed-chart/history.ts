/** Speeds of the last hour, in steps: the highest of each step counts, so that a short burst is seen. */

export const STEP_MS = 15_000;
export const HOUR_MS = 3_600_000;

export interface Point {
  /** Begin of the step, in milliseconds since the epoch. */
  readonly at: number;
  /** Bytes per second. */
  readonly speed: number;
}

export class History {
  #points: readonly Point[] = [];

  add(now: number, speed: number): void {
    const at = now - (now % STEP_MS);
    const last = this.#points.at(-1);
    const before = last?.at === at ? this.#points.slice(0, -1) : this.#points;
    const highest = last?.at === at ? Math.max(last.speed, speed) : speed;
    this.#points = [...before, { at, speed: highest }].filter((point) => point.at > now - HOUR_MS);
  }

  /** The points of the last hour in pieces: where nothing was measured, no line is drawn. */
  pieces(now: number): readonly (readonly Point[])[] {
    const pieces: Point[][] = [];
    for (const point of this.#points.filter(({ at }) => at > now - HOUR_MS)) {
      const piece = pieces.at(-1);
      if (piece && point.at - (piece.at(-1)?.at ?? 0) <= 2 * STEP_MS) piece.push(point);
      else pieces.push([point]);
    }
    return pieces;
  }
}
