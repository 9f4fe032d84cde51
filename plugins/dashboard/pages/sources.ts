/** The data of all pages, read at each rendering. */
import { createHash } from 'node:crypto';
import type {
  Clock,
  Config,
  ConfigTrial,
  Content,
  LiveShare,
  Logger,
  Notice,
  OwnedTab,
  PluginContext,
  Role,
  Tab,
  View,
} from 'mountkeeper';
import { maySee } from '../view.ts';
import type { ProtocolOffer } from '../overview/share-data.ts';
import type { Recent } from '../live/recent.ts';
import { NotDrawn } from './not-drawn.ts';

/** Who reads a page. */
export interface Reader {
  readonly language: string;
  /** The host name that the reader's browser used. */
  readonly host: string;
  readonly role: Role;
  /** Undefined without one, as by Basic or a token. */
  readonly signIn?: string | undefined;
}

export class Sources {
  readonly #ctx: PluginContext;
  readonly #recent: () => Recent;

  constructor(ctx: PluginContext, recent: () => Recent) {
    this.#ctx = ctx;
    this.#recent = recent;
  }

  get recent(): Recent {
    return this.#recent();
  }

  get clock(): Clock {
    return this.#ctx.use('clock');
  }

  get log(): Logger {
    return this.#ctx.log;
  }

  get config(): Config {
    return this.#ctx.use('config').current.config;
  }

  get record() {
    return this.#ctx.use('status').snapshot.record;
  }

  /** Undefined also while the control API is off. */
  get trial(): ConfigTrial | undefined {
    return this.#ctx.find('configChanges')?.trial;
  }

  /**
   * There is nothing that a page of shares could show or be wrong about, and somebody may set the first one up.
   * Shares that are gone may still have files on their way.
   */
  isFirstRun({ role }: Pick<Reader, 'role'>): boolean {
    const { shares, allSynced } = this.record;
    const isEmpty = this.config.shares.length === 0 && shares.length === 0 && allSynced;
    return isEmpty && role === 'admin' && this.#ctx.find('setup') !== undefined;
  }

  get notices(): readonly Notice[] {
    return this.#ctx.use('status').notices;
  }

  get live(): ReadonlyMap<string, LiveShare> {
    return new Map(
      this.#ctx
        .use('shares')
        .list()
        .map((share) => [share.spec.share.name, share]),
    );
  }

  get offers(): readonly ProtocolOffer[] {
    return this.#ctx
      .use('exporters')
      .list()
      .flatMap(({ protocol, exporter }) =>
        (exporter.offers?.() ?? []).map((offer) => ({ ...offer, protocol })),
      );
  }

  /** Of the servers that speak TLS. */
  get certificates() {
    return this.#ctx.find('certificates')?.list() ?? [];
  }

  /** Those that the reader may see. */
  tabs(place: NonNullable<Tab['place']>, { role }: Pick<Reader, 'role'>): readonly OwnedTab[] {
    const all = this.#ctx
      .use('tabs')
      .list()
      .filter(({ tab }) => (tab.place ?? 'tab') === place && maySee(role, tab));
    return [...all].sort(
      (a, b) => (a.tab.order ?? 50) - (b.tab.order ?? 50) || (a.tab.id < b.tab.id ? -1 : 1),
    );
  }

  /** There is such a tab, and the reader may not see it. */
  isRefused(id: string, { role }: Pick<Reader, 'role'>): boolean {
    return this.#ctx
      .use('tabs')
      .list()
      .some(({ tab }) => tab.id === id && !maySee(role, tab));
  }

  /** Undefined also for a tab that the reader may not see. */
  tab(id: string, { role }: Pick<Reader, 'role'>): OwnedTab | undefined {
    return this.#ctx
      .use('tabs')
      .list()
      .find(({ tab }) => tab.id === id && maySee(role, tab));
  }
}

const ids = new Map<string, string>();
const MOST_IDS = 10_000;

/** An id for the page and its events, because names of shares may contain any character. */
export function shareId(share: string): string {
  const known = ids.get(share);
  if (known !== undefined) return known;
  if (ids.size > MOST_IDS) ids.clear();
  const id = `share-${createHash('sha256').update(share).digest('hex').slice(0, 12)}`;
  ids.set(share, id);
  return id;
}

export function controlsOf(sources: Sources, owned: OwnedTab, view: View): Content {
  return isolated(sources, owned, `controls ${view.share ?? ''}`, () => owned.tab.controls?.(view));
}

/** Compared by identity: another one means that the controls are drawn anew. */
export function controlsVersionOf(sources: Sources, owned: OwnedTab): unknown {
  return isolated(sources, owned, 'controlsVersion', () => owned.tab.controlsVersion?.());
}

/** A plugin that throws leaves its place empty, and nothing else happens. */
export function isolated<T>(sources: Sources, owned: OwnedTab, what: string, draw: () => T): T | null {
  const notDrawn = new NotDrawn(owned, sources.log, what);
  try {
    const drawn = draw();
    notDrawn.forget();
    return drawn;
  } catch (err) {
    notDrawn.tell(err, 'controls of the dashboard were not drawn');
    return null;
  }
}
