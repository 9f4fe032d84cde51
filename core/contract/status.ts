/** The contract's part about the status: what the daemon says of itself and of each share. */
import type { Notice } from './notifications.ts';

/** An immutable status record. Readers never wait for a cycle. */
export interface Snapshot {
  /** Grows by one with every published change. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  readonly record: StatusRecord;
}

export interface StatusService {
  readonly snapshot: Snapshot;
  /** Calls `fn` after each publication until released. Only inside an effect. */
  onPublish(fn: (snapshot: Snapshot) => void): () => void;
  /** What `collectNotices` gathered in the last cycles: for the dashboard and for people. */
  readonly notices: readonly Notice[];
}
/** The contract's part about the status: what the daemon says of itself and of each share. */

export type Health = 'pending' | 'probing' | 'healthy' | 'failed';

export type WarmupState = 'none' | 'pending' | 'listing' | 'caching' | 'complete' | 'failed';

/** Open: status of one share. The API's edge maps it to the spec's snake_case. */
export interface ShareStatus {
  name: string;
  mounted: boolean;
  rcPort: number;
  cacheBytes: number;
  dirtyCount: number;
  erroredFiles: number;
  /** Bytes per second. */
  speed: number;
  transfers: number;
  errors: number;
  health: Health;
  /** Why it failed, or what is wrong though it works; null when nothing is. */
  healthMessage: string | null;
  warmupState: WarmupState;
  warmupDone: number;
  warmupTotal: number;
  dirRefreshActive: boolean;
  /** Milliseconds since the epoch; null when never. */
  lastDirRefreshAt: number | null;
  lastDirRefreshDirsOk: number;
  lastDirRefreshDirsFailed: number;
}

export interface WarmupRuleStatus {
  share: string;
  path: string;
  newerThan: string | null;
  state: Exclude<WarmupState, 'none'>;
  totalFiles: number;
  skipped: number;
  cached: number;
  errors: number;
}

/**
 * Open: the daemon's status. A field whose plugin is off has the default that the API's contract gives it.
 */
export interface StatusRecord {
  /** Milliseconds since the epoch. */
  startedAt: number;
  shares: readonly ShareStatus[];
  smbdRunning: boolean;
  webdavRunning: boolean;
  nfsExported: boolean;
  warmup: readonly WarmupRuleStatus[];
  nasOffline: boolean;
  /**
   * Every share reachable and nothing queued, uploading, open with changes, errored or orphaned on disk.
   * Unknown reads as false.
   */
  allSynced: boolean;
}
