/**
 * What the status does not keep: each share's speed over the last minutes, the time of its last state
 * change, and the age of the figures.
 */
import type { Clock, Snapshot } from 'mountkeeper';
import { conditionOf } from '../overview/share-data.ts';

/** Two minutes at the usual interval of 2 s. */
const SAMPLES = 60;

interface Trail {
  /** Another list at each sample, so that the same one is unchanged. */
  speeds: readonly number[];
  /** What the share's badge says, which began at `since`. */
  condition: string;
  since: number | undefined;
}

export class Recent {
  readonly #clock: Clock;
  readonly #trails = new Map<string, Trail>();
  #heardAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#heardAtMs = clock.monotonic();
  }

  /** Takes the result of a supervisor cycle. */
  sample({ record }: Snapshot): void {
    const names = new Set(record.shares.map(({ name }) => name));
    for (const name of this.#trails.keys()) if (!names.has(name)) this.#trails.delete(name);
    for (const { name, speed } of record.shares) {
      const trail = this.#trail(name);
      trail.speeds = followed(trail.speeds, Math.round(speed));
    }
  }

  /** Call it at every publication; there are more of them than cycles. */
  heard({ record }: Snapshot): void {
    this.#heardAtMs = this.#clock.monotonic();
    for (const status of record.shares) {
      const isNew = !this.#trails.has(status.name);
      const trail = this.#trail(status.name);
      const condition = conditionOf(status);
      if (trail.condition === condition) continue;
      trail.condition = condition;
      // The states at the start began at an unknown time.
      trail.since = isNew ? undefined : this.#clock.now();
    }
  }

  speeds(share: string): readonly number[] {
    const { speeds = [] } = this.#trails.get(share) ?? {};
    return speeds.some((speed) => speed > 0) ? speeds : [];
  }

  since(share: string): number | undefined {
    return this.#trails.get(share)?.since;
  }

  /** Age of the status, in milliseconds. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#heardAtMs;
  }

  #trail(share: string): Trail {
    const known = this.#trails.get(share);
    if (known) return known;
    const made: Trail = { speeds: [], condition: '', since: undefined };
    this.#trails.set(share, made);
    return made;
  }
}

/** The same list where another one would have the same numbers: nothing moves on most shares for most of the time. */
function followed(speeds: readonly number[], speed: number): readonly number[] {
  const isSame = speeds.length === SAMPLES && speeds.every((one) => one === speed);
  return isSame ? speeds : [...speeds.slice(1 - SAMPLES), speed];
}
