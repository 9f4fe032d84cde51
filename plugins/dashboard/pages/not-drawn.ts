/**
 * What a plugin could not draw is logged once for each reason, until it is drawn again: pages are drawn anew in every
 * cycle, and for every reader.
 */
import { reasonOf } from 'mountkeeper';
import type { Logger, OwnedTab } from 'mountkeeper';

/** Of one tab: there may be a panel of it for each share, in each language. */
const MOST_KNOWN = 500;

/** The last reason, by what was drawn for whom. A plugin that is loaded anew has another tab. */
const told = new WeakMap<OwnedTab['tab'], Map<string, string>>();

export class NotDrawn {
  readonly #owned: OwnedTab;
  readonly #log: Logger;
  readonly #what: string;

  /** `what`: a part of the tab, and for whom; equal ones are told of together. */
  constructor(owned: OwnedTab, log: Logger, what: string) {
    this.#owned = owned;
    this.#log = log;
    this.#what = what;
  }

  tell(err: unknown, message: string): void {
    const { plugin, tab } = this.#owned;
    const known = told.get(tab) ?? new Map<string, string>();
    told.set(tab, known);
    const reason = reasonOf(err);
    if (known.get(this.#what) === reason) return;
    if (known.size >= MOST_KNOWN && !known.has(this.#what)) return;
    known.set(this.#what, reason);
    this.#log.warn({ shownBy: plugin, tab: tab.id, err: err ?? reason }, message);
  }

  /** It works again. */
  forget(): void {
    told.get(this.#owned.tab)?.delete(this.#what);
  }
}
