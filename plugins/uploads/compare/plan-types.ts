/** What a plan is made of. */
import type { LeavingEntry, QueueEntry, RemoteVersion } from 'mountkeeper';
import type { PendingMove } from './places.ts';
import type { MoveRecord, PlaceRecord } from './records.ts';
import type { ScanEntry } from './scan.ts';

/** Folders that two moves in each other's way go over, in the share's root on the remote. */
export const DETOUR_PREFIX = '.mountkeeper-moving-';

export interface Item {
  readonly id: string;
  readonly action: QueueEntry['action'];
  /** As users see it. */
  readonly path: string;
  /** Where it is about on the remote. */
  readonly place: string;
  readonly bytes: number;
  readonly entry?: ScanEntry;
  readonly move?: PendingMove & { readonly isDetour: boolean };
  /** Ids of what must be done before. */
  readonly needs: Set<string>;
  /** Why it cannot go now, whatever the remote says. */
  readonly hold?: string;
  /** Of a deletion: what was known of the place when it was planned. */
  readonly planned?: PlaceRecord;
  /** A deletion that makes room for something else. */
  readonly isInTheWay?: boolean;
  /** Its place is another's yet: it is in nobody's way there. */
  readonly isDisplaced?: boolean;
  /** It will never go up as it is. */
  readonly isRefused?: boolean;
}

/** What has to be found out below: the one place, or all that is at and in it. */
export interface Lesson {
  readonly place: string;
  readonly isTree: boolean;
  /** We brought it there and users removed it: all that is there is what they saw. */
  readonly isGone?: boolean;
  /** Key of the folder that users put there. */
  readonly folder?: string;
}

export interface Plan {
  readonly items: ReadonlyMap<string, Item>;
  readonly lessons: readonly Lesson[];
  /** Places of what is to be moved: what lies there belongs to it. */
  readonly sources: readonly string[];
  /** Records that say nothing any more. */
  readonly spent: readonly string[];
  /** What the remote has, too, and hides its later changes for no use. */
  readonly done: readonly LeavingEntry[];
  /** What users look for where the remote had it before: folders whose marks say so, files without data. */
  readonly stale: readonly LeavingEntry[];
  /** Files that may be cut off, with what stands in their place. */
  readonly cut: readonly { readonly place: string; readonly entry: ScanEntry }[];
  /** Files that the remote has as they are. */
  readonly clean: readonly CleanFile[];
}

export interface CleanFile {
  readonly entry: ScanEntry;
  /** As it was brought there. */
  readonly version: RemoteVersion;
  /**
   * Nobody has changed it for a while, and what users saw there before cannot be taken for it by size and
   * time.
   */
  readonly mayMakeRoom: boolean;
}

export interface Known {
  readonly places: ReadonlyMap<string, PlaceRecord>;
  readonly moves: ReadonlyMap<string, MoveRecord>;
}

export interface Conditions {
  readonly isOpen: (path: string) => boolean;
  /** True for what nobody has changed for a while. */
  readonly isRested: (changedNs: bigint) => boolean;
  /** Nothing was renamed while the look was taken. */
  readonly isWhole: boolean;
  /** True for what was changed while the disk was full. */
  readonly isCut: (changedNs: bigint) => boolean;
  /** Paths that are to go as they are. */
  readonly isUrgent: (path: string) => boolean;
  /** Folders that must not be moved on the remote now. */
  readonly inUse: ReadonlySet<string>;
  /** False for what was changed a moment ago: nanoseconds since the epoch. */
  readonly isQuiet: (changedNs: bigint, path: string) => boolean;
}
