/**
 * What changes on a share's card from one cycle to the next. It is sent alone; the card is rendered again only
 * when anything else has changed.
 */
import type { View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';
import { hasLine, putLine, putMeter } from '../pages/nodes.ts';
import type { ShareData } from './share-data.ts';

/** The part of the cache that is surely used: rclone measures it only now and then, but waiting files are in it. */
function usedCache({ status, dirtyBytes }: ShareData): number {
  return Math.max(status.cacheBytes, dirtyBytes ?? 0);
}

/** Whether its warmup has a number of files. */
export function isWarmed({ status: { warmupState } }: ShareData): boolean {
  return warmupState === 'caching' || warmupState === 'complete';
}

/** One object is filled, always in the same order: there are hundreds of cards in each cycle. */
export function liveValues(data: ShareData, view: View): Values {
  const { status, speeds } = data;
  const values: Record<string, string> = {};
  putCache(values, data, view);
  values['waiting'] = waiting(data, view);
  values['waits@data-tone'] = status.dirtyCount > 0 ? 'warn' : '';
  putOldest(values, data);
  values['speed'] = view.rate(status.speed);
  values['moving'] = status.transfers > 0 ? view.plain('transfers', { count: status.transfers }) : '';
  putLine(values, speeds);
  if (isWarmed(data))
    values['warmed'] = view.plain('done-of', { done: status.warmupDone, total: status.warmupTotal });
  return values;
}

/** What a card is made of: equal `shape`s differ in their `values` at most. */
interface Card {
  readonly shape: string;
  readonly values: Values;
}

interface Known extends Card {
  readonly data: ShareData;
}

/** Of each share, made again where its data has changed: a page is also drawn because of other things. */
export class KnownCards {
  readonly #known = new Map<string, Known>();

  of(data: ShareData, view: View): Card {
    const { name } = data.status;
    const known = this.#known.get(name);
    if (known && isSame(known.data, data)) return known;
    const shape = known && hasSameShape(known.data, data) ? known.shape : shapeOf(data);
    const made = { data, shape, values: liveValues(data, view) };
    this.#known.set(name, made);
    return made;
  }
}

/** Of plain data. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  return isSameBut(NOTHING, one, other);
}

function isSameBut(leftOut: ReadonlySet<string>, before: object, after: object): boolean {
  const [one, other] = [before as Record<string, unknown>, after as Record<string, unknown>];
  const keys = Object.keys(other);
  if (keys.length !== Object.keys(one).length) return false;
  for (const key of keys) if (!leftOut.has(key) && !isSame(one[key], other[key])) return false;
  return true;
}

function putCache(values: Record<string, string>, data: ShareData, view: View): void {
  const { cacheLimit } = data;
  const dirty = data.dirtyBytes ?? 0;
  const used = usedCache(data);
  values['cache'] =
    cacheLimit === 0
      ? view.plain('cache-used', { used: view.bytes(used) })
      : view.plain('cache-used-of', { used: view.bytes(used), limit: view.bytes(cacheLimit) });
  if (cacheLimit > 0) putMeter(values, cacheLimit, { dirty, clean: used - dirty });
}

function waiting({ status, dirtyBytes }: ShareData, view: View): string {
  const count = status.dirtyCount;
  if (count === 0) return view.plain(status.mounted ? 'nothing' : 'nothing-known');
  return dirtyBytes === undefined
    ? view.plain('files', { count })
    : view.plain('files-bytes', { count, bytes: view.bytes(dirtyBytes) });
}

function putOldest(values: Record<string, string>, { status, oldestDirtyAt }: ShareData): void {
  const isShown = status.dirtyCount > 0 && oldestDirtyAt !== undefined;
  values['oldest@hidden'] = isShown ? '' : 'hidden';
  if (isShown) values['oldest@data-at'] = String(oldestDirtyAt);
}

/** What changes without a new rendering. */
const LIVE_STATUS = {
  cacheBytes: 0,
  dirtyCount: 0,
  speed: 0,
  transfers: 0,
  warmupDone: 0,
  warmupTotal: 0,
} as const;
const NOTHING: ReadonlySet<string> = new Set();
const LIVE_FIELDS: ReadonlySet<string> = new Set(Object.keys(LIVE_STATUS));
/** Compared otherwise. */
const LIVE_DATA: ReadonlySet<string> = new Set(['status', 'dirtyBytes', 'oldestDirtyAt', 'speeds']);

/** What needs a new rendering where it changes. A field that is new in the data counts. */
export function shapeOf(data: ShareData): string {
  return JSON.stringify({
    ...data,
    status: { ...data.status, ...LIVE_STATUS },
    dirtyBytes: 0,
    oldestDirtyAt: 0,
    speeds: hasLine(data.speeds),
  });
}

/** Whether their `shapeOf` is the same, without making it. */
function hasSameShape(before: ShareData, after: ShareData): boolean {
  return (
    hasLine(before.speeds) === hasLine(after.speeds) &&
    isSameBut(LIVE_FIELDS, before.status, after.status) &&
    isSameBut(LIVE_DATA, before, after)
  );
}
