/**
 * The status record: the contract's defaults, merged with what plugins contribute, published as an
 * immutable snapshot with a version number. Readers take the last one and never wait.
 */
import type { Logger } from 'pino';
import type { Clock } from './contract/platform.ts';
import type { Notice } from './contract/notifications.ts';
import type {
  CoreShareStatus,
  CoreStatus,
  Snapshot,
  StatusOwners,
  StatusRecord,
  StatusService,
} from './contract/status.ts';

/**
 * When the wall clock and the monotonic clock differ by more than this, the wall clock was set; the start
 * time is then corrected to it.
 */
const CLOCK_SET_MS = 5_000;
/**
 * The supervisor asks the shares every 3 s at least. What they answered longer ago, because of a slow machine or
 * because this process was suspended, says nothing of files that were written since.
 */
const OLDEST_SYNCED_MS = 4_500;

/** A share about which nothing is known yet. */
export function emptyShareStatus(name: string): CoreShareStatus {
  return {
    name,
    mounted: false,
    rcPort: 0,
    cacheBytes: 0,
    dirtyCount: 0,
    erroredFiles: 0,
    speed: 0,
    transfers: 0,
    errors: 0,
    health: 'pending',
    healthMessage: null,
  };
}

/** What the core says before it has looked at any share. */
export function emptyRecord(startedAt: number): CoreStatus {
  return {
    startedAt,
    shares: [],
    allSynced: false,
  };
}

export class StatusStore implements StatusService {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #listeners = new Set<(snapshot: Snapshot) => void>();
  readonly #startedMonotonicMs: number;
  #snapshot: Snapshot;
  #lookedAtMs: number;
  /** When the shares were asked whether all is synced. */
  #askedAtMs: number;
  #notices: readonly Notice[] = [];
  readonly #standing = new Map<string, Notice>();
  readonly #owners: () => StatusOwners;

  constructor(options: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly owners?: () => StatusOwners;
  }) {
    this.#owners = options.owners ?? (() => ({ daemon: new Map(), share: new Map() }));
    this.#clock = options.clock;
    this.#log = options.log;
    const now = this.#clock.now();
    this.#startedMonotonicMs = this.#clock.monotonic();
    this.#lookedAtMs = this.#startedMonotonicMs;
    this.#askedAtMs = this.#startedMonotonicMs;
    this.#snapshot = Object.freeze({ version: 0, takenAt: now, record: Object.freeze(emptyRecord(now)) });
  }

  /**
   * The last published snapshot; once a share was asked too long ago, it no longer says that everything is
   * synced.
   */
  get snapshot(): Snapshot {
    const { version, takenAt, record } = this.#snapshot;
    if (record.allSynced && this.#clock.monotonic() - this.#askedAtMs > OLDEST_SYNCED_MS) {
      this.#snapshot = Object.freeze({
        version: version + 1,
        takenAt,
        record: Object.freeze({ ...record, allSynced: false }),
      });
    }
    return this.#snapshot;
  }

  /** Until something is published, plugins' fields have these values. */
  startWith(fields: Partial<StatusRecord>): void {
    const { version, takenAt, record } = this.#snapshot;
    if (version === 0)
      this.#snapshot = Object.freeze({ version, takenAt, record: frozenCopy({ ...fields, ...record }) });
  }

  owners(): StatusOwners {
    return this.#owners();
  }

  /** When somebody last looked at the shares, on the monotonic clock. */
  get lookedAtMs(): number {
    return this.#lookedAtMs;
  }

  /** Milliseconds since the shares were asked whether all is synced; undefined unless the snapshot says so. */
  get syncedAgeMs(): number | undefined {
    return this.snapshot.record.allSynced ? this.#clock.monotonic() - this.#askedAtMs : undefined;
  }

  /**
   * Confirms that the last published snapshot is still true now. `askedAtMs`: when the shares were asked whether
   * all is synced, on the monotonic clock.
   */
  confirm(askedAtMs = this.#clock.monotonic()): void {
    this.#lookedAtMs = this.#clock.monotonic();
    this.#askedAtMs = askedAtMs;
  }

  get notices(): readonly Notice[] {
    return [...this.#standing.values(), ...this.#notices];
  }

  setNotices(notices: readonly Notice[]): void {
    this.#notices = Object.freeze([...notices]);
  }

  /** Sets or removes a permanent notice of the core. */
  setStanding(key: string, notice: Notice | undefined): void {
    if (notice) this.#standing.set(key, notice);
    else this.#standing.delete(key);
  }

  onPublish(fn: (snapshot: Snapshot) => void): () => void {
    const listener = (snapshot: Snapshot): void => fn(snapshot);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** `askedAtMs` as with `confirm`. */
  publish(record: Omit<StatusRecord, 'startedAt'>, askedAtMs?: number): Snapshot {
    const takenAt = this.#clock.now();
    this.confirm(askedAtMs);
    this.#snapshot = Object.freeze({
      version: this.#snapshot.version + 1,
      takenAt,
      record: frozenCopy({ ...record, startedAt: this.#startedAt(takenAt) }),
    });
    for (const listener of this.#listeners) this.#tell(listener);
    return this.#snapshot;
  }

  #startedAt(now: number): number {
    const known = this.#snapshot.record.startedAt;
    const reckoned = Math.round(now - (this.#clock.monotonic() - this.#startedMonotonicMs));
    return Math.abs(reckoned - known) > CLOCK_SET_MS ? reckoned : known;
  }

  #tell(listener: (snapshot: Snapshot) => void): void {
    try {
      listener(this.#snapshot);
    } catch (error) {
      this.#log.error({ err: error }, 'status listener failed');
    }
  }
}

/** Plugins may still change the objects that they passed in; the snapshot must not change with them. */
function frozenCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => frozenCopy(item))) as T;
  const copy = { ...value } as Record<string, unknown>;
  for (const key of Object.keys(copy)) {
    const item = copy[key];
    // Hardly any is one, and there are many fields in each cycle.
    if (typeof item === 'object' && item !== null) copy[key] = frozenCopy(item);
  }
  return Object.freeze(copy) as T;
}
