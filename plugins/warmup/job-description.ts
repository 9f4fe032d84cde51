/** Messages between the daemon and its helper process: one JSON document per line, in both directions. */
import type { CacheAccess } from 'mountkeeper';

/** What may change while the helper is working: all lines after its first. Contains credentials. */
export interface Terms {
  readonly concurrency: number;
  /** Mounts of other shares whose users read over the same connection. */
  readonly otherMounts: readonly CacheAccess[];
}

/** The helper's first line. Contains credentials. */
export interface Order extends Terms {
  readonly module: string;
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly mountPoint: string;
  readonly path: string;
  /** Files changed before this time are skipped; milliseconds since the epoch. */
  readonly changedSinceMs: number | null;
  /** Only counts. */
  readonly isDryRun: boolean;
  /** File for the list of what is to be fetched; written while the folders are listed. */
  readonly listFile: string;
}

/** A line to the helper: the refresh that it asked for is over. */
export interface Refreshed {
  readonly refreshed: number;
}

/** Totals, correct at every moment (not increments). */
export interface Counts {
  readonly total: number;
  readonly skipped: number;
  readonly cached: number;
  readonly errors: number;
  readonly totalBytes: number;
  readonly skippedBytes: number;
  readonly cachedBytes: number;
}

export const NO_COUNTS: Counts = {
  total: 0,
  skipped: 0,
  cached: 0,
  errors: 0,
  totalBytes: 0,
  skippedBytes: 0,
  cachedBytes: 0,
};

/**
 * `away`: the mount or the remote stopped answering; nothing is wrong with the files. `full`: the rest does
 * not fit into the cache. `stopped`: ended by the daemon.
 */
export type Outcome = 'complete' | 'away' | 'full' | 'failed' | 'stopped';

export interface Ending {
  readonly outcome: Outcome;
  /** For the log only. */
  readonly reason: string;
}

export type Report =
  | { readonly kind: 'counts'; readonly phase: 'listing' | 'caching'; readonly counts: Counts }
  | { readonly kind: 'problem'; readonly path: string; readonly reason: string }
  /** Asks for a refresh of the folder in the mount, `isDeep` with everything below; answered by `Refreshed`. */
  | { readonly kind: 'refresh'; readonly id: number; readonly folder: string; readonly isDeep: boolean }
  | { readonly kind: 'end'; readonly ending: Ending };
