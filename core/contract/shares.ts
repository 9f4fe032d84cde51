/** Contract of shares as they are now, and of the bandwidth that their mounts get. */
import type { Bandwidth, Mount, MountStats, RemoteEvidence, ShareSpec } from './mount.ts';
import type { Health } from './status.ts';

/** Figures of a mount and when they were taken (monotonic). */
export interface TakenFigures {
  /** Without size and age of what waits where the share has files that its mount does not upload. */
  readonly stats: MountStats;
  readonly takenAtMs: number;
  /** How long the mount took to give them, in milliseconds. */
  readonly tookMs?: number | undefined;
}

/** A configured share as it is now. `mount` is undefined while it is not mounted. */
export interface LiveShare {
  readonly spec: ShareSpec;
  readonly health: Health;
  readonly mount: Mount | undefined;
  /** True while it is mounted with former settings, until its dirty files are on the remote. */
  readonly hasFormerSettings?: boolean | undefined;
  /** Whether the remote answered the last light check; undefined before the first. */
  readonly remoteAnswers: boolean | undefined;
  /** How long that check took, in milliseconds; left out while the remote does not answer. */
  readonly remoteTookMs?: number | undefined;
  /** What the failed check showed; absent where the mounter does not say. */
  readonly remoteEvidence?: RemoteEvidence | undefined;
  /** The mount's latest figures; absent before the first. */
  readonly figures?: TakenFigures | undefined;
}

/**
 * The supervisor's shares, for plugins that work on active mounts. A mount may end at any time: do not keep
 * it, ask each time.
 */
export interface SharesService {
  list(): readonly LiveShare[];
  /** One of the list by its name, without what it takes to describe the others. */
  get(name: string): LiveShare | undefined;
}

/** The bandwidth of all mounts. Bytes per second; 0 is unlimited. */
export interface BandwidthState {
  /** As set by the configuration or by the last `bwlimit`. */
  readonly limit: Bandwidth;
  /** The limit after plugins have transformed it; this is what is divided. */
  readonly effective: Bandwidth;
  /** The part of each mount. */
  readonly shares: readonly ({ readonly share: string } & Bandwidth)[];
}

/** The daemon's one bandwidth budget as it is now. */
export interface BandwidthService {
  read(): BandwidthState;
}
