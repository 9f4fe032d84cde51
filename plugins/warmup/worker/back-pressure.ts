import { createSerialQueue, pause } from 'mountkeeper/sdk';
import type { CacheView, Clock } from 'mountkeeper';

const LOOK_EVERY_MS = 150;
/**
 * Interval of checks of other shares' mounts, and how much longer it gets for each of them: fifty mounts
 * must not cost more than one.
 */
const CHECK_OTHERS_EVERY_MS = 250;
const CHECK_OTHERS_PER_MOUNT_MS = 20;
/** How long after the last sign of another reader it counts as gone. */
const QUIET_MS = 1_000;
/** A file that was read here may still be transferred for this long. */
const OWN_FOR_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 8_000;
/** While others read, this helper works a third of the time. */
const PAUSE_PER_WORK = 2;

/** The mount of another share on the same connection, which is not being warmed up at the same time. */
export type OtherReader = Pick<CacheView, 'transfers'>;

/**
 * Detects whether anybody else reads through the mount, or through another one on the same connection.
 * While somebody does, only one piece of work runs at a time, with pauses twice as long as the work.
 */
export class BackPressure {
  readonly #view: Pick<CacheView, 'transfers'>;
  readonly #clock: Clock;
  readonly #others: () => readonly OtherReader[];
  readonly #own = new Map<string, number>();
  readonly #othersSeen = new WeakMap<OtherReader, ReadonlyMap<string, number>>();
  readonly #asked = new WeakSet<OtherReader>();
  /** All transfers at the last check, with their bytes. */
  #seen: ReadonlyMap<string, number> = new Map();
  #busyUntilMs = -Infinity;
  readonly #turns = createSerialQueue();
  #pauseMs = FIRST_PAUSE_MS;

  constructor(
    view: Pick<CacheView, 'transfers'>,
    clock: Clock,
    otherReaders: () => readonly OtherReader[] = () => [],
  ) {
    this.#view = view;
    this.#clock = clock;
    this.#others = otherReaders;
  }

  get isBusy(): boolean {
    return this.#clock.monotonic() < this.#busyUntilMs;
  }

  /** Checks until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const beside = this.#watchOthers(signal);
    while (!signal.aborted) {
      // The next look comes soon; until then the former answer holds.
      await this.look().catch(() => undefined);
      await pause(this.#clock, LOOK_EVERY_MS, signal);
    }
    await beside;
  }

  async #watchOthers(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Not awaited: a mount that hangs delays nobody.
      void this.checkOthers();
      await pause(
        this.#clock,
        Math.max(CHECK_OTHERS_EVERY_MS, CHECK_OTHERS_PER_MOUNT_MS * this.#others().length),
        signal,
      );
    }
  }

  async checkOthers(): Promise<void> {
    const free = this.#others().filter((reader) => !this.#asked.has(reader));
    await Promise.all(
      free.map(async (reader) => {
        this.#asked.add(reader);
        // Who does not answer gives no cause to wait.
        await this.#checkReader(reader).catch(() => undefined);
        this.#asked.delete(reader);
      }),
    );
  }

  /** Uploads take nothing from readers; a transfer without a known direction counts as a download. */
  async #checkReader(reader: OtherReader): Promise<void> {
    const coming = (await reader.transfers()).filter(({ isUpload }) => isUpload !== true);
    const now = new Map(coming.map(({ path, bytes }) => [path, bytes] as const));
    const seen = this.#othersSeen.get(reader);
    this.#othersSeen.set(reader, now);
    if (seen !== undefined && [...now].some(([path, bytes]) => seen.get(path) !== bytes))
      this.#othersAreThere();
  }

  async look(): Promise<void> {
    const now = new Map((await this.#view.transfers()).map(({ path, bytes }) => [path, bytes] as const));
    const atMs = this.#clock.monotonic();
    for (const [path, untilMs] of this.#own) if (untilMs < atMs) this.#own.delete(path);
    // A transfer without progress, such as a paused film, needs no consideration.
    const isMoving = [...now].some(([path, bytes]) => !this.#own.has(path) && this.#seen.get(path) !== bytes);
    this.#seen = now;
    if (isMoving) this.#othersAreThere();
  }

  #othersAreThere(): void {
    if (!this.isBusy) this.#pauseMs = FIRST_PAUSE_MS;
    this.#busyUntilMs = this.#clock.monotonic() + QUIET_MS;
  }

  /** This helper is reading the file; the returned function ends that. */
  own(path: string): () => void {
    this.#own.set(path, Infinity);
    return () => void this.#own.set(path, this.#clock.monotonic() + OWN_FOR_MS);
  }

  /** Runs the work at once, or in its turn while others read. */
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
