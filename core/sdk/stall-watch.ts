/**
 * Plugins share the daemon's event loop: while one runs without a pause, no request, probe or other plugin
 * runs. This names the plugin that takes too long.
 */
import type { Clock, Logger } from '../contract/platform.ts';

/** People notice a longer pause on a page or in the figures. */
const LONGEST_MS = 200;
/** One plugin is named for one place at most this often. */
const SAY_EVERY_MS = 60_000;

export interface Place {
  readonly plugin: string;
  /** Such as `hook afterCycle` or `route GET /ext`. */
  readonly at: string;
}

export class StallWatch {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  readonly #saidMs = new Map<string, number>();

  constructor({ clock, log }: { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Calls `run` and measures until it returns: what it awaits afterwards blocks nobody. */
  call<T>(place: Place, run: () => T): T {
    const start = this.#clock.monotonic();
    try {
      return run();
    } finally {
      const now = this.#clock.monotonic();
      if (now - start > LONGEST_MS) this.#say(place, Math.round(now - start), now);
    }
  }

  #say({ plugin, at }: Place, ms: number, now: number): void {
    const key = `${plugin} ${at}`;
    if (now - (this.#saidMs.get(key) ?? -Infinity) < SAY_EVERY_MS) return;
    this.#saidMs.set(key, now);
    this.#log.warn(
      { plugin, at, ms },
      'plugin held up everything else; work that takes long belongs into a process of its own',
    );
  }
}
