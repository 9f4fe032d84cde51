import { createSerialQueue } from 'mountkeeper/sdk';
import type { CacheView, Clock } from 'mountkeeper';

const LOOK_EVERY_MS = 150;
/** At the mounts of other shares, and for each so much longer: fifty of them must not cost more than one. */
const LOOK_BESIDE_EVERY_MS = 250;
const LOOK_BESIDE_PER_MOUNT_MS = 20;
/** After the last sign of somebody else. */
const QUIET_MS = 1_000;
/** A file that was read here may be on its way a little longer. */
const OWN_FOR_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 8_000;
/** Beside others, this helper works a third of the time. */
const PAUSE_PER_WORK = 2;

/** The mount of another share on the same line. Nobody warms it up at the same time. */
export type OtherReader = Pick<CacheView, 'transfers'>;

/**
 * Knows whether anybody else fetches through the mount, or through another one on the same line, and then
 * lets only one piece of work go at a time, with pauses twice as long as the work.
 */
export class BackPressure {
  readonly #view: Pick<CacheView, 'transfers'>;
  readonly #clock: Clock;
  readonly #others: () => readonly OtherReader[];
  readonly #own = new Map<string, number>();
  readonly #othersSeen = new WeakMap<OtherReader, ReadonlyMap<string, number>>();
  readonly #asked = new WeakSet<OtherReader>();
  /** At the last look, everybody's. */
  #seen: ReadonlyMap<string, number> = new Map();
  #busyUntilMs = -Infinity;
  readonly #turns = createSerialQueue();
  #pauseMs = FIRST_PAUSE_MS;

  constructor(
    view: Pick<CacheView, 'transfers'>,
    clock: Clock,
    neighbours: () => readonly OtherReader[] = () => [],
  ) {
    this.#view = view;
    this.#clock = clock;
    this.#others = neighbours;
  }

  get isBusy(): boolean {
    return this.#clock.monotonic() < this.#busyUntilMs;
  }

  /** Looks until the signal ends it. */
  async watch(signal: AbortSignal): Promise<void> {
    const beside = this.#watchOthers(signal);
    while (!signal.aborted) {
      await this.look().catch(() => undefined);
      await this.#clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
    }
    await beside;
  }

  async #watchOthers(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // One that hangs keeps nobody waiting.
      void this.lookBeside();
      await this.#clock
        .sleep(Math.max(LOOK_BESIDE_EVERY_MS, LOOK_BESIDE_PER_MOUNT_MS * this.#others().length), signal)
        .catch(() => undefined);
    }
  }

  async lookBeside(): Promise<void> {
    const free = this.#others().filter((neighbour) => !this.#asked.has(neighbour));
    await Promise.all(
      free.map(async (neighbour) => {
        this.#asked.add(neighbour);
        await this.#lookAt(neighbour).catch(() => undefined);
        this.#asked.delete(neighbour);
      }),
    );
  }

  /** What goes up takes nothing from those who read; where that is not told, it counts as a read. */
  async #lookAt(neighbour: OtherReader): Promise<void> {
    const coming = (await neighbour.transfers()).filter(({ isUpload }) => isUpload !== true);
    const now = new Map(coming.map(({ path, bytes }) => [path, bytes] as const));
    const seen = this.#othersSeen.get(neighbour);
    this.#othersSeen.set(neighbour, now);
    if (seen !== undefined && [...now].some(([path, bytes]) => seen.get(path) !== bytes))
      this.#othersAreThere();
  }

  async look(): Promise<void> {
    const now = new Map((await this.#view.transfers()).map(({ path, bytes }) => [path, bytes] as const));
    const atMs = this.#clock.monotonic();
    for (const [path, untilMs] of this.#own) if (untilMs < atMs) this.#own.delete(path);
    // One that stands still, such as a film that is paused, is in nobody's way.
    const isMoving = [...now].some(([path, bytes]) => !this.#own.has(path) && this.#seen.get(path) !== bytes);
    this.#seen = now;
    if (isMoving) this.#othersAreThere();
  }

  #othersAreThere(): void {
    if (!this.isBusy) this.#pauseMs = FIRST_PAUSE_MS;
    this.#busyUntilMs = this.#clock.monotonic() + QUIET_MS;
  }

  /** The file is read by this helper; the returned function says that it no longer is. */
  own(path: string): () => void {
    this.#own.set(path, Infinity);
    return () => void this.#own.set(path, this.#clock.monotonic() + OWN_FOR_MS);
  }

  /** Does the work at once, or in its turn while others are at it. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    if (!this.isBusy) return work();
    return this.#turns.run(async () => {
      if (this.isBusy) await this.#clock.sleep(this.#pauseMs);
      const startedMs = this.#clock.monotonic();
      try {
        return await work();
      } finally {
        this.#pauseMs = Math.min(LONGEST_PAUSE_MS, PAUSE_PER_WORK * (this.#clock.monotonic() - startedMs));
      }
    });
  }
}
