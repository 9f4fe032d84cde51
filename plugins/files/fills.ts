/** How open pages learn that the remote's list of a share, or what is cached of it, may be another by now. */
import type { Clock, LiveShare, Mount } from 'mountkeeper';

/** While files come and go, the remote is asked once in this time for what no queue tells of. */
export const FRESH_MS = 10_000;
/** The same while nothing waits: reading alone has the remote asked. */
const CACHE_MS = 5_000;
/** rclone counts its cache four times a minute: after the click that fetches a folder, pages look by themselves. */
const LOOKS = 5;
const LOOK_EVERY_MS = 4_000;

interface Cached {
  readonly text: string;
  /** Monotonic. */
  readonly at: number;
}

interface Noted {
  readonly times: number;
  /** When a folder was last asked for (monotonic). */
  readonly fetchedAt: number;
}

const NOTHING: Noted = { times: 0, fetchedAt: -Infinity };

export class Fills {
  readonly #clock: () => Clock;
  readonly #cached = new WeakMap<Mount, Cached>();
  readonly #noted = new WeakMap<Mount, Noted>();

  constructor(clock: () => Clock) {
    this.#clock = clock;
  }

  /** The mount has read its folders again: what pages show of it is old. */
  readAgain(mount: Mount | undefined): void {
    if (mount) this.#note(mount, {});
  }

  /** Files begin to come into the cache. */
  fetching(mount: Mount | undefined): void {
    if (mount) this.#note(mount, { fetchedAt: this.#clock().monotonic() });
  }

  /** Another text whenever a listing of the share that was made before is old. */
  version(mount: Mount, live: LiveShare): string {
    const { times, fetchedAt } = this.#noted.get(mount) ?? NOTHING;
    const looks = Math.floor((this.#clock().monotonic() - fetchedAt) / LOOK_EVERY_MS);
    return `${times} ${Math.min(LOOKS, looks)} ${this.#cachedOf(mount, live)}`;
  }

  #note(mount: Mount, what: Partial<Noted>): void {
    const former = this.#noted.get(mount) ?? NOTHING;
    this.#noted.set(mount, { ...former, ...what, times: former.times + 1 });
  }

  #cachedOf(mount: Mount, { figures }: LiveShare): string {
    const { cacheBytes = 0, downloading = false, dirtyFiles = 0 } = figures?.stats ?? {};
    const [text, at] = [`${cacheBytes} ${downloading}`, this.#clock().monotonic()];
    const told = this.#cached.get(mount);
    const restMs = dirtyFiles > 0 ? FRESH_MS : CACHE_MS;
    if (told && (told.text === text || at - told.at < restMs)) return told.text;
    this.#cached.set(mount, { text, at });
    return text;
  }
}
