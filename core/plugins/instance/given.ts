/**
 * What a plugin gives is checked where it is given: copied as plain data, of the kind that the contract says,
 * or left out. So nothing of it can break, change or grow what the core publishes later.
 */
import type { Bandwidth } from '../../contract/mount.ts';
import type { Check, Notice } from '../../contract/notifications.ts';
import type { ShareStatus, StatusRecord, WarmupRuleStatus } from '../../contract/status.ts';

const DEEPEST = 8;
/** A thousand rules of eight fields each, ten times over. */
const MOST_VALUES = 100_000;
const LONGEST_TEXT = 65_536;
const LONGEST_SENTENCE = 4_096;
const WARMUP_STATES = new Set(['none', 'pending', 'listing', 'caching', 'complete', 'failed']);
const NOTICE_LEVELS = new Set(['info', 'warning', 'error']);
const CHECK_RESULTS = new Set(['ok', 'warning', 'error']);

/** A value that the contract does not allow. The message completes a sentence that begins with its name. */
export class UnfitValue extends Error {}

/**
 * A copy of null, booleans, finite numbers, texts, lists and plain objects of these. Properties that are
 * undefined are left out. Throws an `UnfitValue`; and whatever a getter throws.
 */
export function plainCopy(value: unknown): unknown {
  return copied(value, { depth: 0, seen: { values: 0 } });
}

interface Progress {
  readonly depth: number;
  readonly seen: { values: number };
}

function copied(value: unknown, { depth, seen }: Progress): unknown {
  seen.values += 1;
  if (seen.values > MOST_VALUES) throw new UnfitValue(`holds more than ${MOST_VALUES} values`);
  if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return value;
  if (typeof value === 'string') {
    if (value.length > LONGEST_TEXT)
      throw new UnfitValue(`holds a text of more than ${LONGEST_TEXT} characters`);
    return value;
  }
  if (typeof value !== 'object')
    throw new UnfitValue(`holds ${typeof value === 'number' ? String(value) : `a ${typeof value}`}`);
  return copiedObject(value, { depth, seen });
}

function copiedObject(value: object, { depth, seen }: Progress): unknown {
  if (depth === DEEPEST) throw new UnfitValue(`is nested more than ${DEEPEST} deep, or holds itself`);
  const next = { depth: depth + 1, seen };
  // Not by its own map(), which may be anything.
  if (Array.isArray(value)) return Array.from(value as unknown[], (item) => copied(item, next));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw new UnfitValue('holds an object that is no plain one');
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, copied(item, next)]));
}

type Kind = (value: unknown) => boolean;
const isFlag: Kind = (value) => typeof value === 'boolean';
const isCount: Kind = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isTime: Kind = (value) => value === null || (typeof value === 'number' && value >= 0);
const isText: Kind = (value) => typeof value === 'string';
const isOneOf =
  (words: ReadonlySet<string>): Kind =>
  (value) =>
    typeof value === 'string' && words.has(value);

const isWarmupRule: Kind = isRecord<WarmupRuleStatus>({
  share: isText,
  path: isText,
  newerThan: (value) => value === null || isText(value),
  state: (value) => value !== 'none' && isOneOf(WARMUP_STATES)(value),
  totalFiles: isCount,
  skipped: isCount,
  cached: isCount,
  errors: isCount,
});

function isRecord<T>(kinds: Readonly<Record<keyof T, Kind>>): Kind {
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries<Kind>(kinds).every(([key, kind]) => kind((value as Record<string, unknown>)[key]));
}

/** The fields of the contract that plugins fill; all others of it are the core's. */
const STATUS_FIELDS: Readonly<Partial<Record<keyof StatusRecord, Kind>>> = {
  smbdRunning: isFlag,
  webdavRunning: isFlag,
  nfsExported: isFlag,
  nasOffline: isFlag,
  warmup: (value) => Array.isArray(value) && value.every(isWarmupRule),
};
const CORE_STATUS = new Set(['startedAt', 'shares', 'allSynced', '__proto__']);

const SHARE_FIELDS: Readonly<Partial<Record<keyof ShareStatus, Kind>>> = {
  warmupState: isOneOf(WARMUP_STATES),
  warmupDone: isCount,
  warmupTotal: isCount,
  dirRefreshActive: isFlag,
  lastDirRefreshAt: isTime,
  lastDirRefreshDirsOk: isCount,
  lastDirRefreshDirsFailed: isCount,
};
const CORE_SHARE: ReadonlySet<string> = new Set([
  'name',
  'mounted',
  'rcPort',
  'cacheBytes',
  'dirtyCount',
  'erroredFiles',
  'speed',
  'transfers',
  'errors',
  'health',
  'healthMessage',
  '__proto__',
]);

/** Whether the core alone says it. */
export function isCoreField(field: string): boolean {
  return CORE_STATUS.has(field);
}

/** Throws an `UnfitValue`. */
export function statusField(field: string, value: unknown): unknown {
  return fit(value, own(STATUS_FIELDS, field));
}

/** One field of a share's status. Throws an `UnfitValue`. */
export function shareField(field: string, value: unknown): unknown {
  if (CORE_SHARE.has(field)) throw new UnfitValue("is the core's own");
  return fit(value, own(SHARE_FIELDS, field));
}

function own(kinds: Readonly<Record<string, Kind>>, field: string): Kind | undefined {
  return Object.hasOwn(kinds, field) ? kinds[field] : undefined;
}

function fit(value: unknown, kind: Kind | undefined): unknown {
  const copy = plainCopy(value);
  if (kind !== undefined && !kind(copy)) throw new UnfitValue('is not of the kind that the contract says');
  return copy;
}

function sentenceIn(value: unknown, key: string): string {
  const text = (value as Record<string, unknown> | null)?.[key];
  if (typeof text !== 'string') throw new UnfitValue(`needs a text as ${key}`);
  return text.slice(0, LONGEST_SENTENCE);
}

function wordIn<T extends string>(value: unknown, key: string, words: ReadonlySet<string>): T {
  const word = sentenceIn(value, key);
  if (!words.has(word)) throw new UnfitValue(`needs ${[...words].join(', ')} as ${key}`);
  return word as T;
}

/** Throws an `UnfitValue`. */
export function notice(value: unknown): Notice {
  return { level: wordIn(value, 'level', NOTICE_LEVELS), message: sentenceIn(value, 'message') };
}

/** Throws an `UnfitValue`. */
export function check(value: unknown): Check {
  return {
    title: sentenceIn(value, 'title'),
    result: wordIn(value, 'result', CHECK_RESULTS),
    detail: sentenceIn(value, 'detail'),
    advice: sentenceIn(value, 'advice'),
  };
}

/** Bytes a second; 0 is no limit. Throws an `UnfitValue`. */
export function bandwidth(value: unknown): Bandwidth {
  const { up, down } = (value ?? {}) as Partial<Bandwidth>;
  const isRate = (rate: unknown): rate is number => Number.isFinite(rate) && (rate as number) >= 0;
  if (!isRate(up) || !isRate(down)) throw new UnfitValue('needs up and down, bytes a second, 0 for no limit');
  return { up, down };
}
