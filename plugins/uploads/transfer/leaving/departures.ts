/**
 * About which places a scan may be wrong, since it began before something there had been taken out of the upper
 * folder, or had come back: it may show what has left, and miss what is here again.
 */
import type { Clock } from 'mountkeeper';
import type { TimedScan } from '../../compare/scan.ts';

/** How long a scan and what follows from it may take. */
const LONGEST_SCAN_MS = 600_000;

/** Of one place, in monotonic milliseconds. */
interface Departure {
  /** When the last attempt was over; Infinity while it goes on. */
  readonly endedMs: number;
  /** When something last left; -Infinity when nothing has. */
  readonly leftMs: number;
}

const NONE: Departure = { endedMs: -Infinity, leftMs: -Infinity };

export class Departures {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #last = new Map<string, Departure>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** What is at these places is being taken out, until the returned function is called with what has left. */
  begin(places: readonly string[]): (left: ReadonlySet<string>) => void {
    for (const place of places) this.#last.set(place, { ...this.#of(place), endedMs: Infinity });
    return (left) => {
      const now = this.#clock.monotonic();
      for (const place of places)
        this.#last.set(place, { endedMs: now, leftMs: left.has(place) ? now : this.#of(place).leftMs });
    };
  }

  /** What could not be brought back yet when a scan began may come back at any moment. */
  mayComeBack(place: string, startedMs: number): void {
    const { endedMs, leftMs } = this.#of(place);
    this.#last.set(place, { endedMs: Math.max(endedMs, startedMs), leftMs });
  }

  /** True where the scan may have missed what is there, or comes back: nothing that is known of it is forgotten. */
  mayReturn({ startedMs }: Pick<TimedScan, 'startedMs'>, place: string): boolean {
    return this.#of(place).endedMs >= startedMs;
  }

  /** True for what the scan may still show. What is missing after it was learnt would count as deleted. */
  hasLeft({ startedMs }: Pick<TimedScan, 'startedMs'>, place: string): boolean {
    return this.#of(place).leftMs >= startedMs;
  }

  /** The scan without what has left since. */
  without(scan: TimedScan): TimedScan {
    const oldest = this.#clock.monotonic() - LONGEST_SCAN_MS;
    for (const [place, { endedMs }] of this.#last) if (endedMs < oldest) this.#last.delete(place);
    if (this.#last.size === 0) return scan;
    const entries = [...scan.entries].filter(([path]) => !this.hasLeft(scan, path));
    return entries.length === scan.entries.size ? scan : { ...scan, entries: new Map(entries) };
  }

  #of(place: string): Departure {
    return this.#last.get(place) ?? NONE;
  }
}
