/**
 * The pages that are open now: one feed for all readers of a page, rendered again when something may have
 * changed, and dropped when nobody reads it.
 */
import { Boom } from 'mountkeeper';
import type { EventSink, Release } from 'mountkeeper';
import type { ModelTraits } from '../pages/models.ts';
import { overviewModel, shareModel, statusModel, tabModel } from '../pages/models.ts';
import type { Reader, Sources } from '../pages/sources.ts';
import { Feed } from './feed.ts';
import type { PageModel } from './feed.ts';

/** Identifies the page; part of the address of its stream. */
export type PageName =
  | { readonly kind: 'overview' }
  | { readonly kind: 'status' }
  | { readonly kind: 'share'; readonly name: string }
  | { readonly kind: 'tab'; readonly name: string };

export interface PageRequest {
  /** Whoever asks, among all who do: the same for all pages of one. */
  readonly who: string;
  readonly page: PageName;
  readonly reader: Reader;
  readonly query: Readonly<Record<string, string>>;
}

/**
 * How long a feed without readers is kept, because the page may be opened again or its reader may
 * reconnect.
 */
const LINGER_MS = 30_000;
/**
 * Each is drawn with every change. Beyond this number those without readers are dropped, and then one of whoever
 * reads most: a reader chooses how many there are, by the query of a page.
 */
const MOST_FEEDS = 100;
/** Changes within this time lead to one rendering. */
const GATHER_MS = 50;

interface Joined {
  readonly who: string;
  /** Ends its stream. */
  readonly end: () => void;
}

interface Entry {
  readonly feed: Feed;
  readonly joined: Set<Joined>;
  readonly tabId: string | undefined;
  readonly reader: Reader;
  leftAtMs: number;
  unwatch: Release | undefined;
}

export class Feeds {
  readonly #sources: Sources;
  readonly #build: () => string;
  readonly #entries = new Map<string, Entry>();
  #gathering: (() => void) | undefined;
  #hasChanged = false;

  /** `build`: hash of the files that pages load; known from the first page on. */
  constructor(sources: Sources, build: () => string) {
    this.#sources = sources;
    this.#build = build;
  }

  /** The page's feed, up to date; undefined when there is no such page. One for which there is no room is not kept. */
  async open(request: PageRequest): Promise<Feed | undefined> {
    const feed = this.#entry(request, () => this.#dropIdle())?.feed;
    await feed?.refresh({ isWhole: true });
    return feed;
  }

  /** Adds a reader. Returns the function that removes it. Throws when whoever asks has no room to read this, too. */
  join(request: PageRequest, sink: EventSink, seen: string | undefined): Release {
    const entry = this.#entry(request, () => this.#makeRoom(request.who));
    if (!entry) {
      sink.end();
      return () => undefined;
    }
    const leave = entry.feed.join(sink, seen);
    const left = (): void => {
      leave();
      if (!entry.joined.delete(joined)) return;
      entry.leftAtMs = this.#sources.clock.monotonic();
      if (entry.feed.readers === 0) this.#unwatch(entry);
    };
    // A stream ends when its reader has taken what was sent; room is made at once.
    const end = (): void => {
      left();
      sink.end();
    };
    const joined: Joined = { who: request.who, end };
    entry.joined.add(joined);
    this.#watch(entry);
    sink.send({ event: 'beat', data: this.#beat() });
    void entry.feed.refresh();
    return left;
  }

  /** Call it when something may have changed. */
  changed(): void {
    this.#hasChanged = true;
    this.#gathering ??= this.#sources.clock.after(GATHER_MS, () => {
      this.#gathering = undefined;
      for (const { feed } of this.#entries.values()) if (feed.readers > 0) void feed.refresh();
    });
  }

  /** Sends a heartbeat with the age of the figures; drops feeds without readers. */
  beat(): void {
    const now = this.#sources.clock.monotonic();
    const data = this.#beat();
    // A status that is no longer renewed must not be shown as current.
    if (!this.#hasChanged) this.changed();
    this.#hasChanged = false;
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

  /** `makeRoom` is called where it is a new one. */
  #entry(request: PageRequest, makeRoom: () => void): Entry | undefined {
    const key = JSON.stringify([
      request.page,
      this.#signInOf(request),
      request.reader.language,
      request.reader.host,
      request.reader.role,
      Object.entries(request.query).sort(([a], [b]) => (a < b ? -1 : 1)),
    ]);
    const known = this.#entries.get(key);
    if (known) return known;
    const model = this.#model(request, () => void this.#entries.get(key)?.feed.refresh());
    if (!model) return undefined;
    const entry: Entry = {
      feed: new Feed(model, this.#sources.log),
      joined: new Set(),
      tabId: request.page.kind === 'tab' ? request.page.name : undefined,
      reader: request.reader,
      leftAtMs: this.#sources.clock.monotonic(),
      unwatch: undefined,
    };
    makeRoom();
    if (this.#entries.size < MOST_FEEDS) this.#entries.set(key, entry);
    return entry;
  }

  /** Undefined where the page is the same for all sign-ins. */
  #signInOf({ page, reader }: PageRequest): string | undefined {
    const owned = page.kind === 'tab' ? this.#sources.tab(page.name, reader) : undefined;
    return owned?.tab.isOfSignIn === true ? reader.signIn : undefined;
  }

  #model({ page, reader, query }: PageRequest, onLate: () => void): PageModel | undefined {
    const traits: ModelTraits = { sources: this.#sources, reader, onLate };
    if (page.kind === 'overview') return overviewModel(traits);
    if (page.kind === 'status') return statusModel(traits);
    if (page.kind === 'share')
      return this.#isShare(page.name) ? shareModel(page.name, query, traits) : undefined;
    const owned = this.#sources.tab(page.name, reader);
    return owned && (owned.tab.place ?? 'tab') === 'tab' ? tabModel(owned, query, traits) : undefined;
  }

  #isShare(name: string): boolean {
    return (
      this.#sources.record.shares.some((share) => share.name === name) ||
      this.#sources.config.shares.some((share) => share.name === name)
    );
  }

  /** A tab that reports its changes itself. */
  #watch(entry: Entry): void {
    const owned = entry.tabId === undefined ? undefined : this.#sources.tab(entry.tabId, entry.reader);
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

  #dropIdle(): void {
    if (this.#entries.size < MOST_FEEDS) return;
    const idle = [...this.#entries]
      .filter(([, { feed }]) => feed.readers === 0)
      .sort(([, a], [, b]) => a.leftAtMs - b.leftAtMs);
    for (const [key, entry] of idle.slice(0, Math.max(1, idle.length / 2))) this.#drop(key, entry);
  }

  /** Whoever reads most makes way for who reads less: nobody shuts the others out. */
  #makeRoom(who: string): void {
    this.#dropIdle();
    while (this.#entries.size >= MOST_FEEDS) {
      const read = this.#readBy();
      const [most, pages] = [...read].reduce((a, b) => (b[1].length > a[1].length ? b : a));
      if (pages.length <= (read.get(who)?.length ?? 0) + 1)
        throw Boom.serverUnavailable(
          `${MOST_FEEDS} different pages are open already, as many as are kept up to date; close some.`,
        );
      const [key, entry] = pages.at(-1) as [string, Entry];
      for (const joined of entry.joined) if (joined.who === most) joined.end();
      if (entry.feed.readers === 0) this.#drop(key, entry);
    }
  }

  /** The pages that each reads, the newest last. */
  #readBy(): ReadonlyMap<string, readonly [string, Entry][]> {
    const read = new Map<string, [string, Entry][]>();
    for (const page of this.#entries)
      for (const who of new Set([...page[1].joined].map((one) => one.who)))
        read.set(who, [...(read.get(who) ?? []), page]);
    return read;
  }

  #drop(key: string, entry: Entry): void {
    this.#unwatch(entry);
    this.#entries.delete(key);
  }
}
