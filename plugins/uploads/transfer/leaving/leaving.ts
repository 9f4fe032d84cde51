/** Decides when uploaded entries are removed from the upper folder, and what is tried again later. */
import type { Clock, LeavingEntry } from 'mountkeeper';
import { parentOf } from '../../compare/paths.ts';
import type { Plan } from '../../compare/plan-types.ts';
import type { Scan, ScanEntry } from '../../compare/scan.ts';
import { shownWith } from '../../compare/spent-folders.ts';
import type { StepTools } from '../step-tools.ts';
import { renewMoved, takeOutDone } from './take-out.ts';

/** Pause before an entry that could not be removed is tried again, in milliseconds. */
const REST_MS = 30_000;
/**
 * The same for entries that were moved on the remote: until then, files that exist only there are not
 * visible.
 */
const MOVED_REST_MS = 1_000;
const PAUSE_MS = 5_000;

export interface LeavingOptions {
  readonly clock: Clock;
  readonly tools: () => StepTools;
  /** Called before the lower layer is refreshed: until then it must be known what users changed in it. */
  readonly learnFirst: () => Promise<void>;
  /** Called with the keys of entries that users now see at their place on the remote. */
  readonly settled: (keys: readonly string[]) => void;
}

export class Leaving {
  readonly #options: LeavingOptions;
  readonly #touched = new Set<string>();
  #done: readonly LeavingEntry[] = [];
  #entries: Scan['entries'] = new Map();
  /** Entries that users still look for at a former place. */
  #stale: readonly LeavingEntry[] = [];
  #isRenewing = false;
  /** When the last renewal ended, in monotonic milliseconds. */
  #renewedAtMs = -Infinity;
  /** Which entries those are is not known: no look has begun since the last renewal ended. */
  #isOutdated = false;
  /** When what could not be renewed may be tried again, in monotonic milliseconds. */
  #renewFrom = 0;
  #isTakingOut = false;
  /** Entries that could not be removed: when each may be tried again, in monotonic milliseconds. */
  readonly #refused = new Map<string, number>();
  #from = 0;

  constructor(options: LeavingOptions) {
    this.#options = options;
  }

  touched(folder: string): void {
    this.#touched.add(folder);
  }

  /** `sinceMs`: when the look began that found them, in monotonic milliseconds. */
  adopt({ entries }: Scan, { done, stale }: Plan, sinceMs: number): void {
    const now = this.#options.clock.monotonic();
    for (const path of this.#refused.keys()) if (!entries.has(path)) this.#refused.delete(path);
    const isDue = ({ path }: LeavingEntry): boolean => (this.#refused.get(path) ?? 0) <= now;
    this.#done = done.filter(isDue);
    this.#entries = entries;
    // All or none: the listing that is read anew for one lacks the former names of the others.
    this.#isOutdated = this.#isRenewing || sinceMs < this.#renewedAtMs;
    this.#stale = this.#isOutdated ? [] : stale;
  }

  /**
   * Renewals do not wait for uploads, however many: until then, files that exist only at the new place are
   * not visible.
   */
  get isRenewalDue(): boolean {
    return this.#stale.length > 0 && !this.#isRenewing && this.#options.clock.monotonic() >= this.#renewFrom;
  }

  /** Whether users may still look for anything at a former place, also where it is not time to renew that. */
  get isRenewalPending(): boolean {
    return this.#stale.length > 0 || this.#isRenewing || this.#isOutdated;
  }

  /** Whether listings are being read anew, or are to be: nothing may be moved on the remote meanwhile. */
  get readsAnew(): boolean {
    return this.#isRenewing || this.#isTakingOut || this.isRenewalDue;
  }

  get isDue(): boolean {
    return this.#options.clock.monotonic() >= this.#from && (this.#done.length > 0 || this.#touched.size > 0);
  }

  /** Another look is due after it, however it ends. */
  async renew(): Promise<void> {
    const { clock, tools, learnFirst, settled } = this.#options;
    const entries: readonly ScanEntry[] = this.#stale;
    this.#stale = [];
    this.#isRenewing = true;
    this.#renewFrom = clock.monotonic() + MOVED_REST_MS;
    try {
      await learnFirst();
      const { keys, isWhole } = await renewMoved(entries, tools());
      settled(keys);
      if (isWhole) this.#renewFrom = clock.monotonic();
    } finally {
      this.#isRenewing = false;
      this.#isOutdated = true;
      this.#renewedAtMs = clock.monotonic();
    }
  }

  /** True when this changed the upper folder, or an entry must be removed in another way. */
  async takeOut(): Promise<boolean> {
    const { clock, tools, learnFirst } = this.#options;
    const [entries, all] = [this.#done, this.#entries];
    const folders = [...new Set([...this.#touched, ...entries.map(({ path }) => parentOf(path))])];
    this.#done = [];
    this.#touched.clear();
    this.#isTakingOut = true;
    try {
      await learnFirst();
      const taken = await takeOutDone(entries, folders, tools(), (path) => shownWith(path, all));
      for (const { path, movedFrom } of entries) {
        if (taken.has(path) || this.#isKept(path)) this.#refused.delete(path);
        else this.#rest(path, movedFrom === undefined ? REST_MS : MOVED_REST_MS);
      }
      return taken.size > 0 || entries.some(({ path, copy }) => copy === undefined && this.#isKept(path));
    } catch (error) {
      for (const folder of folders) this.#touched.add(folder);
      this.#from = clock.monotonic() + PAUSE_MS;
      if (tools().signal.aborted) return false;
      throw error;
    } finally {
      this.#isTakingOut = false;
    }
  }

  #rest(path: string, ms: number): void {
    this.#refused.set(path, this.#options.clock.monotonic() + ms);
  }

  #isKept(path: string): boolean {
    return this.#options.tools().records.places.get(path)?.isKept === true;
  }
}
