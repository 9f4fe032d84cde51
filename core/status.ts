/**
 * The status record: the contract's defaults, merged with what plugins contribute, published as an immutable
 * snapshot with a version number. Readers take the last one and never wait.
 */
import type { Logger } from 'pino';
import type { Clock } from './contract/platform.ts';
import type { Notice } from './contract/notifications.ts';
import type { ShareStatus, Snapshot, StatusRecord, StatusService } from './contract/status.ts';

/**
 * A clock that differs by more from the time that has passed was set: then the start is a moment of the new
 * time.
 */
const CLOCK_SET_MS = 5_000;
/**
 * The supervisor looks every 3 s. When it has not, this process stood still, and files may have been written
 * since.
 */
const STOOD_STILL_MS = 4_500;

/** A share about which nothing is known yet: every field has the contract's default. */
export function emptyShareStatus(name: string): ShareStatus {
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
    warmupState: 'none',
    warmupDone: 0,
    warmupTotal: 0,
    dirRefreshActive: false,
    lastDirRefreshAt: null,
    lastDirRefreshDirsOk: 0,
    lastDirRefreshDirsFailed: 0,
  };
}

/** A record whose every field has the default that holds while its plugin is off. */
export function emptyRecord(startedAt: number): StatusRecord {
  return {
    startedAt,
    shares: [],
    smbdRunning: false,
    webdavRunning: false,
    nfsExported: false,
    warmup: [],
    nasOffline: false,
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
  #notices: readonly Notice[] = [];
  readonly #standing = new Map<string, Notice>();

  constructor(options: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = options.clock;
    this.#log = options.log;
    const now = this.#clock.now();
    this.#startedMonotonicMs = this.#clock.monotonic();
    this.#lookedAtMs = this.#startedMonotonicMs;
    this.#snapshot = Object.freeze({ version: 0, takenAt: now, record: Object.freeze(emptyRecord(now)) });
  }

  /**
   * The last one published; when nobody has looked for too long since, it no longer says that all is synced.
   */
  get snapshot(): Snapshot {
    const { version, takenAt, record } = this.#snapshot;
    if (record.allSynced && this.#clock.monotonic() - this.#lookedAtMs > STOOD_STILL_MS) {
      this.#snapshot = Object.freeze({
        version: version + 1,
        takenAt,
        record: Object.freeze({ ...record, allSynced: false }),
      });
    }
    return this.#snapshot;
  }

  /** When somebody last looked at the shares, on the monotonic clock. */
  get lookedAtMs(): number {
    return this.#lookedAtMs;
  }

  /** What was published last holds now, too. */
  confirm(): void {
    this.#lookedAtMs = this.#clock.monotonic();
  }

  get notices(): readonly Notice[] {
    return [...this.#standing.values(), ...this.#notices];
  }

  setNotices(notices: readonly Notice[]): void {
    this.#notices = Object.freeze([...notices]);
  }

  /** A notice of the core's own that stands until it is taken back. */
  setStanding(key: string, notice: Notice | undefined): void {
    if (notice) this.#standing.set(key, notice);
    else this.#standing.delete(key);
  }

  onPublish(fn: (snapshot: Snapshot) => void): () => void {
    const listener = (snapshot: Snapshot): void => fn(snapshot);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  publish(record: Omit<StatusRecord, 'startedAt'>): Snapshot {
    const takenAt = this.#clock.now();
    this.confirm();
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

/** Plugins go on using what they handed in; the snapshot must not change with it. */
function frozenCopy<T>(value: T): T {
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => frozenCopy(item))) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.freeze(
    Object.fromEntries(
      Object.entries(value).map(([key, item]: [string, unknown]) => [key, frozenCopy(item)]),
    ),
  ) as T;
}
