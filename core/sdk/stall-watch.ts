/**
 * Plugins share the daemon's event loop: while one runs without a pause, no request, probe or other plugin
 * runs. This names the plugin that takes too long. What is called is measured until it returns. Of what it does after
 * its first `await` nobody can tell whose it is without a cost for every promise in the daemon: when the loop stands
 * still then, all calls that were under way are named.
 */
import type { Clock, Logger, Release } from '../contract/platform.ts';
import type { LoopTimes } from '../platform/loop-times.ts';
import { LoopWatch } from '../platform/loop-watch.ts';

/** People notice a longer pause on a page or in the figures. */
const LONGEST_MS = 200;
/** One plugin is named for one place at most this often. */
const SAY_EVERY_MS = 60_000;
/** What has not ended by then hangs, and does nothing. */
const UNDER_WAY_MS = 600_000;
const MOST_NAMED = 5;
const ADVICE = 'work that takes long belongs into a process of its own';

export interface Place {
  readonly plugin: string;
  /** Such as `hook afterCycle` or `route GET /ext`. */
  readonly at: string;
  /** What it awaits runs in a process of the plugin's own, and holds up nobody here. */
  readonly isElsewhere?: boolean;
}

interface Call {
  readonly place: Place;
  readonly sinceMs: number;
}

const keyOf = ({ plugin, at }: Place): string => `${plugin} ${at}`;

export class StallWatch {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  readonly #saidMs = new Map<string, number>();
  /** What calls within the present one took. */
  #withinMs = 0;
  /** What all calls took until they returned. */
  #calledMs = 0;
  /** Their promises have not settled; the oldest first. */
  readonly #underWay = new Set<Call>();
  /** By its key: settled since the last look. */
  readonly #settled = new Map<string, Place>();
  #loop: LoopWatch | undefined;

  constructor({ clock, log }: { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Calls `run` and measures until it returns, without what other calls within took. What it awaits afterwards is
   * measured only while the loop is watched.
   */
  call<T>(place: Place, run: () => T): T {
    const start = this.#clock.monotonic();
    const outerMs = this.#withinMs;
    this.#withinMs = 0;
    try {
      const given = run();
      if (this.#loop && place.isElsewhere !== true && given instanceof Promise) this.#follow(place, given);
      return given;
    } finally {
      const now = this.#clock.monotonic();
      const ownMs = now - start - this.#withinMs;
      this.#withinMs = outerMs + now - start;
      this.#calledMs += ownMs;
      if (ownMs > LONGEST_MS && this.#mayBeSaid(keyOf(place), now)) {
        const { plugin, at } = place;
        this.#log.warn({ plugin, at, ms: Math.round(ownMs) }, `plugin held up everything else; ${ADVICE}`);
      }
    }
  }

  /** From now on also names what holds up everything after an `await`; until the release. */
  watchLoop(clock: Pick<Clock, 'monotonic' | 'after'>, times: () => LoopTimes): Release {
    const toldMs = (): number => this.#calledMs;
    const loop = new LoopWatch({ clock, times, toldMs, onLook: (ms) => this.#look(ms) });
    this.#loop = loop;
    return () => {
      loop.end();
      if (this.#loop === loop) this.#loop = undefined;
      this.#underWay.clear();
    };
  }

  #follow(place: Place, given: Promise<unknown>): void {
    const call = { place, sinceMs: this.#clock.monotonic() };
    this.#underWay.add(call);
    const settle = (): void => {
      if (this.#underWay.delete(call)) this.#settled.set(keyOf(place), place);
    };
    // Whoever called hears of its error.
    void given.then(settle, settle);
    this.#loop?.begin();
  }

  /** False where nobody is under way any more. */
  #look(heldUpMs: number): boolean {
    const now = this.#clock.monotonic();
    const places = new Map(this.#settled);
    this.#settled.clear();
    for (const call of this.#underWay) {
      if (now - call.sinceMs > UNDER_WAY_MS) this.#underWay.delete(call);
      places.set(keyOf(call.place), call.place);
    }
    if (heldUpMs > LONGEST_MS) this.#sayOneOf([...places.values()], Math.round(heldUpMs), now);
    return this.#underWay.size > 0;
  }

  #sayOneOf(places: readonly Place[], ms: number, now: number): void {
    const [first, ...others] = places;
    if (!first) return;
    if (others.length === 0) {
      const { plugin, at } = first;
      if (this.#mayBeSaid(keyOf(first), now))
        this.#log.warn(
          { plugin, at, ms },
          `everything else stood still while the plugin was at work; ${ADVICE}`,
        );
      return;
    }
    const news = places.filter((place) => this.#mayBeSaid(`one of several: ${keyOf(place)}`, now));
    if (news.length === 0) return;
    const candidates = places.map(keyOf).slice(0, MOST_NAMED);
    const unnamed = places.length - candidates.length;
    this.#log.warn(
      { candidates, ...(unnamed > 0 && { unnamed }), ms },
      `everything else stood still while these were at work, and one of them may be why; ${ADVICE}`,
    );
  }

  #mayBeSaid(key: string, now: number): boolean {
    if (now - (this.#saidMs.get(key) ?? -Infinity) < SAY_EVERY_MS) return false;
    this.#saidMs.set(key, now);
    return true;
  }
}
