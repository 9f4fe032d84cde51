/**
 * A share's entry in the status, and the sentences that explain a share which is neither healthy nor
 * failed.
 */
import type { MountStats } from '../contract/mount.ts';
import type { ShareStatus } from '../contract/status.ts';
import type { ShareState } from './state-machine.ts';
import type { ActiveMount } from './active-mount.ts';
import { emptyShareStatus } from '../status.ts';

export const NOTES = {
  hung: 'the mount hangs: neither it nor its remote control answers; it is killed and mounted again',
  leaving: 'it is taken down as soon as its files are on the remote',
  waiting:
    'new settings wait until its files are on the remote; `mountkeeper reconnect` applies them at once',
  former:
    'it keeps its former settings until the files that were written with them are on the remote; ' +
    '`mountkeeper reconnect` applies the new ones at once',
  noMounter: 'no mounter is active: the mount goes on as it is and would not come back',
} as const;

const UNKNOWN: MountStats = {
  cacheBytes: 0,
  dirtyFiles: 0,
  erroredFiles: 0,
  speed: 0,
  transfers: 0,
  errors: 0,
  uploading: false,
};

export interface ShareFacts {
  readonly name: string;
  readonly state: ShareState;
  readonly active: ActiveMount | undefined;
  /** Dirty files in its cache as last seen; used while no mount reports figures. */
  readonly filesOnDisk: number;
  /** They have been counted since this daemon began. */
  readonly isCounted: boolean;
  readonly isLeaving: boolean;
  readonly note: string | undefined;
}

export function describeShare(facts: ShareFacts): ShareStatus {
  const { active } = facts;
  const base = {
    ...emptyShareStatus(facts.name),
    health: facts.state.health,
    healthMessage: message(facts),
    ...(facts.isCounted || active?.watch.stats ? {} : { isDirtyCountUnknown: true }),
    ...(facts.isLeaving ? { isLeaving: true } : {}),
  };
  if (!active) return { ...base, dirtyCount: facts.filesOnDisk };
  const { mount, watch } = active;
  const { cacheBytes, dirtyFiles, erroredFiles, errors, speed, transfers } = watch.stats ?? {
    ...UNKNOWN,
    dirtyFiles: facts.filesOnDisk,
  };
  return {
    ...base,
    mounted: true,
    rcPort: mount.rcPort,
    dirtyCount: dirtyFiles + watch.strandedFiles,
    cacheBytes,
    erroredFiles,
    errors,
    // Speed and transfers are shown only while they are fresh.
    ...(watch.isFresh ? { speed, transfers } : {}),
  };
}

function message(facts: ShareFacts): string | null {
  const { state, active, note } = facts;
  const reason = state.health === 'failed' ? state.reason : active?.watch.trouble;
  const parts = [reason, note, stillGoing(facts)].filter((part) => part !== undefined);
  return parts.length > 0 ? parts.join('; ') : null;
}

/** Files go up from a share that has become read-only, too: who sees both would take one of them for wrong. */
function stillGoing({ active, note }: ShareFacts): string | undefined {
  const count = active?.watch.stats?.dirtyFiles ?? 0;
  if (count === 0 || note !== undefined || active?.spec?.share.read_only !== true) return undefined;
  return count === 1
    ? 'it is read-only now: users cannot write; 1 file that was written before still goes to the NAS'
    : `it is read-only now: users cannot write; ${count} files that were written before still go to the NAS`;
}
