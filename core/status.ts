/**
 * The status record: the contract's defaults, merged with what plugins contribute, published as an immutable snapshot
 * with a version number. Readers take the last one and never wait.
 */
import type { Logger } from 'pino';
import type { Clock, Notice, ShareStatus, Snapshot, StatusRecord, StatusService } from './api.ts';

/** A share about which nothing is known yet: every field has the contract's default. */
export function emptyShareStatus(name: string): ShareStatus {
  return {
    name, mounted: false, rcPort: 0, cacheBytes: 0, dirtyCount: 0, erroredFiles: 0, speed: 0, transfers: 0, errors: 0,
    health: 'pending', healthMessage: null, warmupState: 'none', warmupDone: 0, warmupTotal: 0,
    dirRefreshActive: false, lastDirRefreshAt: null, lastDirRefreshDirsOk: 0, lastDirRefreshDirsFailed: 0,
  };
}

/** A record whose every field has the default that holds while its plugin is off. */
export function emptyRecord(startedAt: number): StatusRecord {
  return { startedAt, shares: [], smbdRunning: false, webdavRunning: false, nfsExported: false, warmup: [], nasOffline: false, allSynced: false };
}

export class StatusStore implements StatusService {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #listeners = new Set<(snapshot: Snapshot) => void>();
  #snapshot: Snapshot;
  #notices: readonly Notice[] = [];

  constructor(options: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = options.clock;
    this.#log = options.log;
    const now = this.#clock.now();
    this.#snapshot = Object.freeze({ version: 0, takenAt: now, record: Object.freeze(emptyRecord(now)) });
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  get notices(): readonly Notice[] {
    return this.#notices;
  }

  setNotices(notices: readonly Notice[]): void {
    this.#notices = Object.freeze([...notices]);
  }

  onPublish(fn: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  publish(record: Omit<StatusRecord, 'startedAt'>): Snapshot {
    for (const share of record.shares) Object.freeze(share);
    this.#snapshot = Object.freeze({
      version: this.#snapshot.version + 1,
      takenAt: this.#clock.now(),
      record: Object.freeze({ ...record, startedAt: this.#snapshot.record.startedAt, shares: Object.freeze([...record.shares]) }),
    });
    for (const listener of this.#listeners) this.#tell(listener);
    return this.#snapshot;
  }

  #tell(listener: (snapshot: Snapshot) => void): void {
    try {
      listener(this.#snapshot);
    } catch (error) {
      this.#log.error({ err: error }, 'status listener failed');
    }
  }
}
