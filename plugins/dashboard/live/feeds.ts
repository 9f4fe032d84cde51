/**
 * The pages that are being read: one feed for all readers of a page, drawn anew when something may have
 * changed, dropped when nobody reads.
 */
import type { EventSink, Release } from 'mountkeeper';
import type { ModelTraits } from '../pages/models.ts';
import { overviewModel, shareModel, statusModel, tabModel } from '../pages/models.ts';
import type { Reader, Sources } from '../pages/sources.ts';
import { Feed } from './feed.ts';
import type { PageModel } from './feed.ts';

/** Which page: part of the address of its stream. */
export type PageName =
  | { readonly kind: 'overview' }
  | { readonly kind: 'status' }
  | { readonly kind: 'share'; readonly name: string }
  | { readonly kind: 'tab'; readonly name: string };

export interface PageRequest {
  readonly page: PageName;
  readonly reader: Reader;
  readonly query: Readonly<Record<string, string>>;
}

/** A page that was just left may be opened again, or its reader's line come back. */
const LINGER_MS = 30_000;
/** With as many pages open at once, those that nobody reads go first. */
const MOST_FEEDS = 100;
/** Of changes that come in a row, all are in one drawing. */
const GATHER_MS = 50;

interface Entry {
  readonly feed: Feed;
  readonly tabId: string | undefined;
  leftAtMs: number;
  unwatch: Release | undefined;
}

export class Feeds {
  readonly #sources: Sources;
  readonly #build: () => string;
  readonly #entries = new Map<string, Entry>();
  #gathering: (() => void) | undefined;

  /** `build`: of the files that pages load, known from the first page on. */
  constructor(sources: Sources, build: () => string) {
    this.#sources = sources;
    this.#build = build;
  }

  /** The page's feed, drawn as it is now; undefined where there is no such page. */
  async open(request: PageRequest): Promise<Feed | undefined> {
    const feed = this.#entry(request)?.feed;
    await feed?.refresh();
    return feed;
  }

  /** A reader who stays. Returns what ends it. */
  join(request: PageRequest, sink: EventSink, seen: string | undefined): Release {
    const entry = this.#entry(request);
    if (!entry) {
      sink.end();
      return () => undefined;
    }
    const leave = entry.feed.join(sink, seen);
    this.#watch(entry);
    sink.send({ event: 'beat', data: this.#beat() });
    void entry.feed.refresh();
    return () => {
      leave();
      entry.leftAtMs = this.#sources.clock.monotonic();
      if (entry.feed.readers === 0) this.#unwatch(entry);
    };
  }

  /** Something may have changed. */
  changed(): void {
    this.#gathering ??= this.#sources.clock.after(GATHER_MS, () => {
      this.#gathering = undefined;
      for (const { feed } of this.#entries.values()) if (feed.readers > 0) void feed.refresh();
    });
  }

  /** Tells readers that the line is good and how old the figures are; drops what nobody reads. */
  beat(): void {
    const now = this.#sources.clock.monotonic();
    const data = this.#beat();
    // A status that nobody has renewed says less than before.
    this.changed();
    for (const [key, entry] of this.#entries) {
      if (entry.feed.readers > 0) entry.feed.tell('beat', data);
      else if (now - entry.leftAtMs > LINGER_MS) this.#drop(key, entry);
    }
  }

  close(): void {
    this.#gathering?.();
    for (const [key, entry] of this.#entries) this.#drop(key, entry);
  }

  #beat(): string {
    return JSON.stringify({ age: Math.round(this.#sources.recent.ageMs), build: this.#build() });
  }

  #entry(request: PageRequest): Entry | undefined {
    const key = JSON.stringify([
      request.page,
      request.reader.language,
      request.reader.host,
      Object.entries(request.query).sort(([a], [b]) => (a < b ? -1 : 1)),
    ]);
    const known = this.#entries.get(key);
    if (known) return known;
    const model = this.#model(request, () => void this.#entries.get(key)?.feed.refresh());
    if (!model) return undefined;
    this.#makeRoom();
    const entry: Entry = {
      feed: new Feed(model, this.#sources.log),
      tabId: request.page.kind === 'tab' ? request.page.name : undefined,
      leftAtMs: this.#sources.clock.monotonic(),
      unwatch: undefined,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #model({ page, reader, query }: PageRequest, onLate: () => void): PageModel | undefined {
    const traits: ModelTraits = { sources: this.#sources, reader, onLate };
    if (page.kind === 'overview') return overviewModel(traits);
    if (page.kind === 'status') return statusModel(traits);
    if (page.kind === 'share')
      return this.#isShare(page.name) ? shareModel(page.name, query, traits) : undefined;
    const owned = this.#sources.tab(page.name);
    return owned && (owned.tab.place ?? 'tab') === 'tab' ? tabModel(owned, query, traits) : undefined;
  }

  #isShare(name: string): boolean {
    return (
      this.#sources.record.shares.some((share) => share.name === name) ||
      this.#sources.config.shares.some((share) => share.name === name)
    );
  }

  /** A tab that says itself when it changes. */
  #watch(entry: Entry): void {
    const owned = entry.tabId === undefined ? undefined : this.#sources.tab(entry.tabId);
    if (entry.unwatch || !owned?.tab.watch) return;
    try {
      entry.unwatch = owned.tab.watch(() => void entry.feed.refresh());
    } catch (err) {
      this.#sources.log.warn({ shownBy: owned.plugin, err }, 'a tab of the dashboard cannot be watched');
    }
  }

  #unwatch(entry: Entry): void {
    const { unwatch } = entry;
    entry.unwatch = undefined;
    void Promise.resolve()
      .then(unwatch)
      .catch((err: unknown) => this.#sources.log.warn({ err }, 'a tab of the dashboard was not let go'));
  }

  #makeRoom(): void {
    if (this.#entries.size < MOST_FEEDS) return;
    const idle = [...this.#entries]
      .filter(([, { feed }]) => feed.readers === 0)
      .sort(([, a], [, b]) => a.leftAtMs - b.leftAtMs);
    for (const [key, entry] of idle.slice(0, Math.max(1, idle.length / 2))) this.#drop(key, entry);
  }

  #drop(key: string, entry: Entry): void {
    this.#unwatch(entry);
    this.#entries.delete(key);
  }
}
