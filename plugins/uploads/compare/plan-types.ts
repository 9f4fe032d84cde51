/** Types of a plan. */
import type { LeavingEntry, QueueEntry, RemoteVersion } from 'mountkeeper';
import type { LateWrites } from './late-writes.ts';
import type { PendingMove } from './places.ts';
import type { MoveRecord, PlaceRecord } from './records.ts';
import type { ScanEntry } from './scan.ts';

/** Temporary folders in the share's root on the remote, for two moves that block each other. */
export const DETOUR_PREFIX = '.mountkeeper-moving-';

export interface Item {
  readonly id: string;
  readonly action: QueueEntry['action'];
  /** The path that users see. */
  readonly path: string;
  /** The path on the remote that it concerns. */
  readonly place: string;
  readonly bytes: number;
  readonly entry?: ScanEntry;
  readonly move?: PendingMove & { readonly isDetour: boolean };
  /** Ids of items that must be done first. */
  readonly needs: Set<string>;
  /** Why it cannot be done now, whatever the remote says. */
  readonly hold?: string;
  /** When that ends by itself, in milliseconds since the epoch. */
  readonly quietAt?: number;
  /** For a deletion: the place's record when the deletion was planned. */
  readonly planned?: PlaceRecord;
  /** For an upload: places that are to be deleted, and that the remote may take for this one. */
  readonly formerNames?: readonly { readonly place: string; readonly planned: PlaceRecord | undefined }[];
  /** For a deletion: users want a place that the remote may take for this one. */
  readonly isSimilar?: boolean;
  /** A deletion that makes way for something else. */
  readonly isInTheWay?: boolean;
  /** Where the remote has what is to be moved there: without that, what is in its way may be the very thing. */
  readonly makesWayFor?: string;
  /** A folder that takes the place of one that was removed before its users could see what was in it. */
  readonly isOverUnseen?: boolean;
  /** Its place still belongs to another entry, so it blocks nobody there. */
  readonly isDisplaced?: boolean;
  /** It is not known yet which version on the remote its users changed. */
  readonly isUnlearnt?: boolean;
  /** It can never be uploaded as it is. */
  readonly isRefused?: boolean;
}

/** What must be found out in the lower layer: one place, or a place with all its content. */
export interface Lesson {
  readonly place: string;
  readonly isTree: boolean;
  /** Users deleted it, or renamed it to somewhere else: they saw something there. */
  readonly wasThere?: boolean;
  /** The uploader put it there and users deleted it: everything there is what they saw. */
  readonly isGone?: boolean;
  /** Key of the folder that users created there. */
  readonly folder?: string;
  /** When the local file began to be: not before it was opened below, where it is a copy of what was there. */
  readonly bornMs?: number;
  /**
   * When users made the change, or later: a file that lay here for long may have been renamed to the place just now.
   * Milliseconds since the epoch.
   */
  readonly changedMs?: number;
}

export interface Plan {
  readonly items: ReadonlyMap<string, Item>;
  readonly lessons: readonly Lesson[];
  /** Sources of planned moves: what is there belongs to the move. */
  readonly sources: readonly string[];
  /** Records that are no longer needed. */
  readonly spent: readonly string[];
  /** Entries that the remote has, too, and that would only hide its later changes. */
  readonly done: readonly LeavingEntry[];
  /**
   * Entries that users still look for at a former place on the remote: folders with an old mark, files
   * without data.
   */
  readonly stale: readonly LeavingEntry[];
  /** Files that a full disk may have truncated, with the entry at their place. */
  readonly cut: readonly { readonly place: string; readonly entry: ScanEntry }[];
  /** Files that are equal on the remote. */
  readonly clean: readonly CleanFile[];
}

export interface CleanFile {
  readonly entry: ScanEntry;
  /** The version that was uploaded. */
  readonly version: RemoteVersion;
  /**
   * True when nobody has changed it for a while, and it differs in size or time from the version that users
   * saw there before.
   */
  readonly mayMakeRoom: boolean;
}

export interface Known {
  readonly places: ReadonlyMap<string, PlaceRecord>;
  readonly moves: ReadonlyMap<string, MoveRecord>;
}

export interface Conditions {
  readonly isOpen: (path: string) => boolean;
  /** True for entries that nobody has changed for a while. */
  readonly isRested: (changedNs: bigint) => boolean;
  /** Nothing was renamed during the scan. */
  readonly isWhole: boolean;
  /** Where it was not: places whose deletion or replacement many scans in a row have shown. */
  readonly often?: ReadonlySet<string>;
  /** Why the remote cannot keep a name, as the end of a sentence. */
  readonly nameProblem: (name: string) => string | undefined;
  /** What was written right before a power cut. */
  readonly late: Pick<LateWrites, 'isTorn' | 'wasRemoved'>;
  /** True for files that were changed while the disk was full. */
  readonly isCut: (changedNs: bigint) => boolean;
  /** Paths that are to be sent without waiting. */
  readonly isUrgent: (path: string) => boolean;
  /** Folders that must not be moved on the remote now. */
  readonly inUse: ReadonlySet<string>;
  /**
   * When a change, given in nanoseconds since the epoch, has been left alone for long enough, in milliseconds since
   * the epoch; undefined where it has, or need not.
   */
  readonly quietAt: (changedNs: bigint, path: string) => number | undefined;
}
