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

/** Plugins by the field that they give. */
export interface StatusOwners {
  readonly daemon: ReadonlyMap<string, string>;
  readonly share: ReadonlyMap<string, string>;
}

export interface StatusService {
  readonly snapshot: Snapshot;
  /**
   * How long ago the shares were asked whether all is synced, in milliseconds; of several shares, the one that
   * was asked first. Undefined unless the snapshot says that all is synced.
   */
  readonly syncedAgeMs: number | undefined;
  /** Calls `fn` after each publication until it is released. Use it only inside an effect. */
  onPublish(fn: (snapshot: Snapshot) => void): () => void;
  /** The notices of the last cycle's `collectNotices`. */
  readonly notices: readonly Notice[];
  /** Which active plugin gives which field. */
  owners(): StatusOwners;
}

/**
 * `healthy`: mounted, and its remote path can be listed, be it from the cache. `probing`: not known whether it can;
 * also of a share that is mounted, and shown to clients, for what was written here, while its remote is away and
 * nothing of it can be read.
 */
export type Health = 'pending' | 'probing' | 'healthy' | 'failed';

/** What a plugin finds wrong with a share that is mounted. */
export interface ShareTrouble {
  readonly share: string;
  /** One plain sentence, without a full stop; 300 characters at most, three of a plugin for one share. */
  readonly message: string;
}

/** What the core says of a share. */
export interface CoreShareStatus {
  name: string;
  mounted: boolean;
  rcPort: number;
  cacheBytes: number;
  dirtyCount: number;
  /** True while nobody has counted them since the daemon began: there may be more. */
  isDirtyCountUnknown?: boolean;
  /** True while it is taken down for good: it is no longer configured, or the daemon stops. */
  isLeaving?: boolean;
  erroredFiles: number;
  /** Bytes per second. */
  speed: number;
  transfers: number;
  errors: number;
  health: Health;
  /** Why it failed, or what is wrong though it works, also by plugins' word; null when nothing is. */
  healthMessage: string | null;
}

/** Open: status of one share. Plugins merge their fields in and give them with `ctx.shareStatus`. */
export interface ShareStatus extends CoreShareStatus {}

/** What the core says of the daemon. */
export interface CoreStatus {
  /** Milliseconds since the epoch. */
  startedAt: number;
  shares: readonly ShareStatus[];
  /**
   * Every share reachable and nothing queued, uploading, open with changes, errored or orphaned on disk.
   * Unknown reads as false.
   */
  allSynced: boolean;
}

/**
 * Open: the daemon's status. Plugins merge their fields in and give them with `ctx.status`. The API's edge maps
 * it to the spec's snake_case.
 */
export interface StatusRecord extends CoreStatus {}

/** Fields of the daemon's status that plugins give. */
export type PluginField = Exclude<keyof StatusRecord, keyof CoreStatus>;
/** Fields of a share's status that plugins give. */
export type PluginShareField = Exclude<keyof ShareStatus, keyof CoreShareStatus>;

/** A field of the daemon's status. */
export interface StatusField<T> {
  /** Plain data. Stands while the plugin is off, and where `read` gives nothing that can be used. */
  readonly default: T;
  /** Asked in every cycle: quick, and at once. Gives plain data of the default's kind; 1 MiB in all. */
  readonly read: () => T;
}

/** Fields of a share's status. */
export interface ShareStatusFields<K extends PluginShareField> {
  /** Every field that `read` may give. As the default of a `StatusField`. */
  readonly defaults: Pick<ShareStatus, K>;
  /** Asked for each share in every cycle. A field that it leaves out has its default; 64 KiB in all. */
  readonly read: (share: string) => Partial<Pick<ShareStatus, K>>;
}
