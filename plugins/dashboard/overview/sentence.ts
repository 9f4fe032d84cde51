/**
 * The overview's main sentence: whether it is safe to switch off. It says "All saved" exactly when the
 * status has `all_synced`; in every other case it names the reason, as far as it is known.
 */
import type { ShareStatus, StatusRecord } from 'mountkeeper';

/**
 * What the status does not contain, for all shares together. Undefined when it is unknown for one of the
 * shares that matter.
 */
export interface Unsaved {
  /** Size of what is not on the NAS. */
  readonly bytes: number | undefined;
  /** Milliseconds since the epoch. */
  readonly oldestAt: number | undefined;
  /** Names of shares whose remote does not answer. */
  readonly cutOff: readonly string[];
  /** Names of shares whose folders with cached files have not all been listed. */
  readonly unread: readonly string[];
  /** When the NAS went offline. */
  readonly offlineSince: number | undefined;
  /** Of shares with files that wait; undefined where none of them is paused. */
  readonly paused: Paused | undefined;
}

/** Names of shares whose uploads are paused, and when the first pause ends: milliseconds since the epoch. */
export interface Paused {
  readonly shares: readonly string[];
  readonly until: number;
}

export type Tone = 'good' | 'warn' | 'bad' | 'wait';

export interface Sentence {
  readonly tone: Tone;
  /** Key in the message catalogues. */
  readonly key:
    | 'saved'
    | 'saved-nothing-shared'
    | 'offline'
    | 'offline-cached'
    | 'offline-partly'
    | 'unsaved'
    | 'refused'
    | 'unreachable'
    | 'leaving'
    | 'starting'
    | 'unknown'
    | 'no-shares';
  readonly files: number;
  readonly bytes: number | undefined;
  readonly oldestAt: number | undefined;
  /** When the NAS went offline. */
  readonly since: number | undefined;
  readonly shares: readonly string[];
  /** While a NAS is offline: files of other shares, which do not wait for it. */
  readonly elsewhere?: number;
  /** While files are refused: those beside them that only wait. */
  readonly others?: number;
  /** Some of the files wait for the end of a pause. */
  readonly paused?: Paused;
  /** While a NAS is offline, and a share that may be its own cannot be used: which can, and which cannot. */
  readonly use?: Use;
}

/** Names of shares. */
export interface Use {
  readonly usable: readonly string[];
  /** In folders alone whose listings are at hand. */
  readonly usablePartly: readonly string[];
  /** Mounted for what was written here; nothing else of them can be listed. */
  readonly unreadable: readonly string[];
  readonly unmounted: readonly string[];
}

const sum = (shares: readonly ShareStatus[], field: 'dirtyCount' | 'erroredFiles'): number =>
  shares.reduce((total, share) => total + share[field], 0);

/** Up without its NAS, from the start: it is probed until its path can be listed. */
export function isUnreadable({ health, mounted }: ShareStatus): boolean {
  return mounted && health === 'probing';
}

function isReadable({ health, mounted }: ShareStatus): boolean {
  return mounted && health === 'healthy';
}

function useOf(shares: readonly ShareStatus[], unread: readonly string[]): Use {
  const names = (is: (share: ShareStatus) => boolean): readonly string[] =>
    shares.filter(is).map(({ name }) => name);
  return {
    usable: names((share) => isReadable(share) && !unread.includes(share.name)),
    usablePartly: names((share) => isReadable(share) && unread.includes(share.name)),
    unreadable: names(({ mounted, health }) => mounted && health !== 'healthy'),
    unmounted: names(({ mounted }) => !mounted),
  };
}

/**
 * Says that cached files can be used only of shares that are mounted and can be read, in all folders. Of one that is
 * not, nobody may know whether its NAS answers: it counts as cut off, so that nothing of it is promised.
 */
function offline(
  shares: readonly ShareStatus[],
  { cutOff, unread }: Pick<Unsaved, 'cutOff' | 'unread'>,
): Pick<Sentence, 'tone' | 'key' | 'shares' | 'elsewhere' | 'use'> {
  // Nobody knows yet which shares it is: then it may be all.
  const affected = cutOff.length === 0 ? shares : shares.filter((share) => isAffected(share, cutOff));
  const use = useOf(affected, unread);
  const areUsable = affected.length > 0 && use.usable.length === affected.length;
  const others = shares.filter(({ name }) => !cutOff.includes(name));
  return {
    elsewhere: cutOff.length === 0 ? 0 : sum(others, 'dirtyCount'),
    tone: 'bad',
    key: areUsable ? 'offline-cached' : use.usable.length > 0 ? 'offline-partly' : 'offline',
    shares: areUsable && affected.length < shares.length ? use.usable : [],
    ...(areUsable ? {} : { use }),
  };
}

function isAffected(share: ShareStatus, cutOff: readonly string[]): boolean {
  return cutOff.includes(share.name) || !share.mounted || share.health !== 'healthy';
}

export function sentenceOf(record: StatusRecord, unsaved: Unsaved): Sentence {
  const { shares, allSynced, nasOffline } = record;
  const files = sum(shares, 'dirtyCount');
  const rest = { files, bytes: unsaved.bytes, oldestAt: unsaved.oldestAt, since: unsaved.offlineSince };
  const named = (chosen: readonly ShareStatus[]): { readonly shares: readonly string[] } => ({
    shares: chosen.map(({ name }) => name),
  });
  if (allSynced)
    return { tone: 'good', key: shares.length > 0 ? 'saved' : 'saved-nothing-shared', ...rest, shares: [] };
  if (nasOffline) return { ...rest, ...offline(shares, unsaved) };
  const { paused } = unsaved;
  const waiting = { ...rest, ...(paused && { paused }) };
  const refused = shares.filter(({ erroredFiles }) => erroredFiles > 0);
  if (refused.length > 0) {
    const count = sum(refused, 'erroredFiles');
    const others = Math.max(files - count, 0);
    return { tone: 'bad', key: 'refused', ...waiting, files: count, others, ...named(refused) };
  }
  if (files > 0)
    return {
      tone: 'warn',
      key: 'unsaved',
      ...waiting,
      ...named(shares.filter(({ dirtyCount }) => dirtyCount > 0)),
    };
  return { ...rest, ...unknown(shares, unsaved) };
}

/** Nothing is known to wait, and yet it is not certain that all is saved. */
function unknown(
  shares: readonly ShareStatus[],
  { cutOff }: Pick<Unsaved, 'cutOff'>,
): Pick<Sentence, 'tone' | 'key' | 'shares'> {
  const names = (chosen: readonly ShareStatus[]): readonly string[] => chosen.map(({ name }) => name);
  // The NAS counts as offline only when it has been silent for longer, or twice.
  const failed = shares.filter(
    (share) => share.health === 'failed' || isUnreadable(share) || cutOff.includes(share.name),
  );
  if (failed.length > 0) return { tone: 'bad', key: 'unreachable', shares: names(failed) };
  const leaving = shares.filter(({ isLeaving }) => isLeaving === true);
  if (leaving.length > 0) return { tone: 'wait', key: 'leaving', shares: names(leaving) };
  const starting = shares.filter(({ health }) => health !== 'healthy');
  if (starting.length > 0) return { tone: 'wait', key: 'starting', shares: names(starting) };
  return { tone: 'wait', key: shares.length === 0 ? 'no-shares' : 'unknown', shares: [] };
}
