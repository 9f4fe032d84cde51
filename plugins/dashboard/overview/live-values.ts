/**
 * What changes on a share's card from one cycle to the next. It is sent alone; the card is rendered again only
 * when anything else has changed.
 */
import type { View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';
import { hasLine, lineValues, meterValues } from '../pages/nodes.ts';
import type { ShareData } from './share-data.ts';

/** The part of the cache that is surely used: rclone measures it only now and then, but waiting files are in it. */
export function usedCache({ status, dirtyBytes }: ShareData): number {
  return Math.max(status.cacheBytes, dirtyBytes ?? 0);
}

/** Whether its warmup has a number of files. */
export function isWarmed({ status: { warmupState } }: ShareData): boolean {
  return warmupState === 'caching' || warmupState === 'complete';
}

export function liveValues(data: ShareData, view: View): Values {
  const { status, speeds } = data;
  return {
    ...cacheValues(data, view),
    waiting: waiting(data, view),
    'waits@data-tone': status.dirtyCount > 0 ? 'warn' : '',
    ...oldest(data),
    speed: view.rate(status.speed),
    moving: status.transfers > 0 ? view.plain('transfers', { count: status.transfers }) : '',
    ...lineValues(speeds),
    ...(isWarmed(data) && {
      warmed: view.plain('done-of', { done: status.warmupDone, total: status.warmupTotal }),
    }),
  };
}

/** What a card is made of: equal `shape`s differ in their `values` at most. */
interface Card {
  readonly shape: string;
  readonly values: Values;
}

interface Known extends Card {
  readonly data: ShareData;
  readonly stable: object;
}

/** Of each share, made again where its data has changed: a page is also drawn because of other things. */
export class KnownCards {
  readonly #known = new Map<string, Known>();

  of(data: ShareData, view: View): Card {
    const { name } = data.status;
    const known = this.#known.get(name);
    if (known && isSame(known.data, data)) return known;
    const stable = stableOf(data);
    const shape = known && isSame(known.stable, stable) ? known.shape : JSON.stringify(stable);
    const made = { data, stable, shape, values: liveValues(data, view) };
    this.#known.set(name, made);
    return made;
  }
}

/** Of plain data. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  const [before, after] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const keys = Object.keys(after);
  if (keys.length !== Object.keys(before).length) return false;
  for (const key of keys) if (!isSame(before[key], after[key])) return false;
  return true;
}

function cacheValues(data: ShareData, view: View): Values {
  const { cacheLimit } = data;
  const dirty = data.dirtyBytes ?? 0;
  const used = usedCache(data);
  return {
    cache:
      cacheLimit === 0
        ? view.plain('cache-used', { used: view.bytes(used) })
        : view.plain('cache-used-of', { used: view.bytes(used), limit: view.bytes(cacheLimit) }),
    ...meterValues(cacheLimit === 0 ? Math.max(used, 1) : cacheLimit, { dirty, clean: used - dirty }),
  };
}

function waiting({ status, dirtyBytes }: ShareData, view: View): string {
  const count = status.dirtyCount;
  if (count === 0) return view.plain(status.mounted ? 'nothing' : 'nothing-known');
  return dirtyBytes === undefined
    ? view.plain('files', { count })
    : view.plain('files-bytes', { count, bytes: view.bytes(dirtyBytes) });
}

function oldest({ status, oldestDirtyAt }: ShareData): Values {
  return status.dirtyCount > 0 && oldestDirtyAt !== undefined
    ? { 'oldest@hidden': '', 'oldest@data-at': String(oldestDirtyAt) }
    : { 'oldest@hidden': 'hidden' };
}

/** What needs a new rendering where it changes. A field that is new in the data counts. */
function stableOf(data: ShareData): object {
  const live = { cacheBytes: 0, dirtyCount: 0, speed: 0, transfers: 0, warmupDone: 0, warmupTotal: 0 };
  return {
    ...data,
    status: { ...data.status, ...live },
    dirtyBytes: usedCache(data) > 0,
    oldestDirtyAt: 0,
    speeds: hasLine(data.speeds),
  };
}

export function shapeOf(data: ShareData): string {
  return JSON.stringify(stableOf(data));
}
