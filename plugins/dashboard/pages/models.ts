/** The pages: the overview, a plugin's tab, a share. Each lists its parts and lays them out. */
import { html, sizeBytes } from 'mountkeeper';
import type { Content, OwnedTab, StatusRecord, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { noticesPanel, sentencePanel } from '../overview/panels.ts';
import { sentenceOf } from '../overview/sentence.ts';
import type { Paused, Unsaved } from '../overview/sentence.ts';
import { isLive, sentenceShape, sentenceValues } from '../overview/sentence-values.ts';
import { KnownCards } from '../overview/live-values.ts';
import { shareCard } from '../overview/share-card.ts';
import { AddressBook, shareData } from '../overview/share-data.ts';
import type { ShareData } from '../overview/share-data.ts';
import type { PageModel, Part } from '../live/feed.ts';
import { createView } from '../view.ts';
import { NAVIGATION, navigation } from './navigation.ts';
import { NotDrawn } from './not-drawn.ts';
import { PluginPart } from './plugin-part.ts';
import { toHtml } from './shell.ts';
import { partId, pluginSlot, slot } from './slots.ts';
import type { Drawn } from './slots.ts';
import { shareButtons, shareButtonsSlot } from './share-buttons.ts';
import { controlsOf, controlsVersionOf, shareId } from './sources.ts';
import type { Reader, Sources } from './sources.ts';

export interface ModelTraits {
  readonly sources: Sources;
  readonly reader: Reader;
  /** Renders the page again: a slow plugin has finished. */
  readonly onLate: () => void;
}

/** Markup of the navigation of a page at this path. */
export function navigationOf(sources: Sources, reader: Reader, path: string): string {
  return toHtml(navigation(sources.tabs('tab', reader), path, createView({ ...reader })));
}

function navigationPart({ sources, reader }: ModelTraits, path: string): Part {
  return { id: NAVIGATION, isOutside: true, draw: () => navigationOf(sources, reader, path) };
}

/** Whose buttons and controls a frame has, and which; a plugin that is loaded anew has others. */
function layoutOf(
  { sources, reader }: ModelTraits,
  ...places: readonly ('card' | 'share')[]
): readonly unknown[] {
  return places.flatMap((place) => sources.tabs(place, reader).flatMap((owned) => drawnOf(sources, owned)));
}

function drawnOf(sources: Sources, owned: OwnedTab): readonly unknown[] {
  return [owned.tab, controlsVersionOf(sources, owned)];
}

function dataOf(
  sources: Sources,
  { host }: Reader,
  record: StatusRecord,
  book: AddressBook,
): readonly ShareData[] {
  const { config, live, offers, recent } = sources;
  book.renew({ config, offers, host });
  const from = {
    cacheLimit: sizeBytes(config.cache.max_size),
    live,
    addresses: (share: string) => book.of(share),
    since: (share: string) => recent.since(share),
    speeds: (share: string) => recent.speeds(share),
  };
  return record.shares.map((status) => shareData(status, from));
}

function unsavedOf(shares: readonly ShareData[], offlineSince: number | undefined): Unsaved {
  const waiting = shares.filter(({ status }) => status.dirtyCount > 0);
  const sizes = waiting.map(({ dirtyBytes }) => dirtyBytes);
  const ages = waiting.map(({ oldestDirtyAt }) => oldestDirtyAt);
  const unread = shares.filter(({ hasUnreadFolders }) => hasUnreadFolders);
  return {
    offlineSince,
    paused: pausedOf(waiting),
    unread: unread.map(({ status }) => status.name),
    cutOff: shares.filter(({ isCutOff }) => isCutOff).map(({ status }) => status.name),
    bytes: sizes.reduce<number | undefined>(
      (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
      0,
    ),
    oldestAt:
      ages.length === 0 || ages.includes(undefined)
        ? undefined
        : Math.min(...ages.map((at) => at ?? Infinity)),
  };
}

function pausedOf(waiting: readonly ShareData[]): Paused | undefined {
  const paused = waiting.filter(({ pausedUntil }) => pausedUntil !== undefined);
  if (paused.length === 0) return undefined;
  const shares = paused.map(({ status }) => status.name);
  return { shares, until: Math.min(...paused.map(({ pausedUntil = Infinity }) => pausedUntil)) };
}

function sentencePart(record: StatusRecord, shares: readonly ShareData[], view: View): Part {
  const sentence = sentenceOf(record, unsavedOf(shares, record.nasOfflineSince ?? undefined));
  return {
    id: 'sentence',
    signature: () => sentenceShape(sentence),
    values: () => (isLive(sentence) ? sentenceValues(sentence, view) : {}),
    draw: () => toHtml(sentencePanel(sentence, view)),
  };
}

/** Renders what plugins show, each one separately; kept for all renderings of a page. */
class PluginParts {
  readonly #traits: ModelTraits;
  readonly #known = new Map<string, { readonly owned: OwnedTab; readonly part: PluginPart }>();

  constructor(traits: ModelTraits) {
    this.#traits = traits;
  }

  of(owned: OwnedTab, view: View): Part {
    const { plugin, tab } = owned;
    const id = partId(owned);
    const known = this.#known.get(id);
    if (known?.owned.tab === tab) return { id, draw: () => known.part.draw() };
    const {
      sources: { clock, log },
      onLate,
    } = this.#traits;
    const ownWords = createView({ language: view.language, host: view.host });
    const part = new PluginPart({
      clock,
      notDrawn: new NotDrawn(owned, log, `${view.language} ${view.share ?? ''}`),
      onLate,
      render: () => tab.render(view) as Content | Promise<Content>,
      toHtml: (content) => toHtml(html`<div class="drawn">${content}</div>`),
      failed: () => toHtml(html`<p class="failed" role="alert">${ownWords.t('not-drawn', { plugin })}</p>`),
    });
    this.#known.set(id, { owned, part });
    return { id, draw: () => part.draw() };
  }
}

export function overviewModel(traits: ModelTraits): PageModel {
  const { sources, reader } = traits;
  const view = createView({ ...reader });
  const known = new KnownCards();
  const book = new AddressBook();
  const plugins = new PluginParts(traits);
  const viewOf = ({ tab }: OwnedTab): View => createView({ ...reader, tab });
  let shares: readonly ShareData[] = [];
  const ownParts = (): readonly Part[] => {
    const { notices, record } = sources;
    shares = dataOf(sources, reader, record, book);
    return [
      sentencePart(record, shares, view),
      {
        id: 'notices',
        signature: () => JSON.stringify(notices),
        draw: () => toHtml(noticesPanel(notices, view, (tab) => sources.tab(tab, reader) !== undefined)),
      },
      ...shares.map((data) => sharePart(data, view, known)),
      ...shares.map(({ status }) => status.name).map(shareButtons(sources, reader)),
    ];
  };
  return {
    title: view.text(everywhere('overview')),
    layout: () => layoutOf(traits, 'share', 'card'),
    parts: () => [
      navigationPart(traits, '/'),
      ...ownParts(),
      ...sources.tabs('card', reader).map((owned) => plugins.of(owned, viewOf(owned))),
    ],
    frame: (drawn) =>
      toHtml(
        html`<h1 class="unseen">${view.t('overview')}</h1>
      ${slot('sentence', drawn)}${slot('notices', drawn)}
      <section class="shares" aria-labelledby="shares-title"><h2 id="shares-title">${view.t('shares')}</h2>
        ${
          shares.length === 0
            ? html`<div class="empty"><p>${view.t('no-shares-help')}</p>${setupLink(view)}</div>`
            : null
        }
        <div class="cards">${shares.map(
          ({ status: { name } }) =>
            html`<article class="card" key=${name} id=${`card-${shareId(name)}`}>
          ${slot(shareId(name), drawn)}${shareButtonsSlot(name, drawn)}</article>`,
        )}</div></section>
      <section class="cards side" aria-label=${view.t('daemon')}>${sources.tabs('card', reader).map((owned) =>
        card(
          {
            sources,
            owned,
            drawn,
          },
          viewOf(owned),
        ),
      )}</section>`,
      ),
  };
}

function setupLink(view: View): Content {
  if (view.role !== 'admin') return null;
  return html`<p><a class="primary" href="/tabs/setup">${view.t('set-up-first')}</a></p>`;
}

/** For a wall screen: nothing on it can be clicked. */
export function statusModel({ sources, reader }: ModelTraits): PageModel {
  const view = createView({ ...reader });
  const known = new KnownCards();
  const book = new AddressBook();
  let shares: readonly ShareData[] = [];
  return {
    title: view.text(everywhere('status-page')),
    parts: () => {
      const { record } = sources;
      shares = dataOf(sources, reader, record, book);
      return [
        sentencePart(record, shares, view),
        ...shares.map((data) => sharePart({ ...data, addresses: [] }, view, known)),
      ];
    },
    frame: (drawn) =>
      toHtml(
        html`<h1 class="unseen">${view.t('status-page')}</h1><div class="wall">${slot('sentence', drawn)}
      <div class="cards">${shares.map(
        ({ status: { name } }) =>
          html`<article class="card" key=${name}>${slot(shareId(name), drawn)}</article>`,
      )}</div></div>`,
      ),
  };
}

function sharePart(data: ShareData, view: View, known: KnownCards): Part {
  const { shape, values } = known.of(data, view);
  return {
    id: shareId(data.status.name),
    signature: () => shape,
    values: () => values,
    draw: () => toHtml(shareCard(data, view)),
  };
}

function card(
  { sources, owned, drawn }: { readonly sources: Sources; readonly owned: OwnedTab; readonly drawn: Drawn },
  view: View,
): Content {
  const { id, title } = owned.tab;
  return html`<article class="card" id=${`frame-${id}`}><h2>${view.text(title)}</h2>${pluginSlot(
    owned,
    drawn,
  )}${controlsOf(sources, owned, view)}</article>`;
}

export function tabModel(
  owned: OwnedTab,
  query: Readonly<Record<string, string>>,
  traits: ModelTraits,
): PageModel {
  const { sources, reader } = traits;
  const view = createView({ ...reader, query, tab: owned.tab });
  const plugins = new PluginParts(traits);
  const current = (): OwnedTab | undefined => sources.tab(owned.tab.id, reader);
  return {
    title: view.text(owned.tab.title),
    layout: () => {
      const now = current();
      return now ? drawnOf(sources, now) : [];
    },
    parts: () => {
      const now = current();
      return [
        navigationPart(traits, `/tabs/${owned.tab.id}`),
        ...(now ? [plugins.of(now, createView({ ...reader, query, tab: now.tab }))] : []),
      ];
    },
    frame: (drawn) => {
      const now = current();
      return toHtml(
        html`<h1>${view.text(owned.tab.title)}</h1>
        ${
          now
            ? html`${controlsOf(sources, now, createView({ ...reader, query, tab: now.tab }))}${pluginSlot(
                owned,
                drawn,
              )}`
            : html`<p class="empty">${createView({ ...reader }).t('tab-off')}</p>`
        }`,
      );
    },
  };
}

export function shareModel(
  share: string,
  query: Readonly<Record<string, string>>,
  traits: ModelTraits,
): PageModel {
  const { sources, reader } = traits;
  const view = createView({ ...reader, share });
  const known = new KnownCards();
  const book = new AddressBook();
  const plugins = new PluginParts(traits);
  const panels = (): readonly OwnedTab[] => sources.tabs('share', reader);
  const viewOf = ({ tab }: OwnedTab): View => createView({ ...reader, share, query, tab });
  const own = (): readonly Part[] => {
    const { record } = sources;
    const shares = dataOf(sources, reader, record, book);
    const now = shares.find(({ status }) => status.name === share);
    return [
      sentencePart(record, shares, view),
      now
        ? sharePart(now, view, known)
        : { id: shareId(share), draw: () => toHtml(html`<p class="empty">${view.t('share-gone')}</p>`) },
    ];
  };
  return {
    title: share,
    layout: () => layoutOf(traits, 'share'),
    parts: () => [
      navigationPart(traits, ''),
      ...own(),
      shareButtons(sources, reader)(share),
      ...panels().map((owned) => plugins.of(owned, viewOf(owned))),
    ],
    frame: (drawn) =>
      toHtml(
        html`<nav class="crumbs"><a href="/">${view.t('overview')}</a></nav><h1><bdi>${share}</bdi></h1>
      ${slot('sentence', drawn)}
      <article class="card">${slot(shareId(share), drawn)}${shareButtonsSlot(share, drawn)}</article>
      ${panels().map(
        (owned) =>
          html`<section class="card panel" id=${`frame-${owned.tab.id}`}><h2>${view.text(owned.tab.title)}</h2>
        ${pluginSlot(owned, drawn)}${controlsOf(sources, owned, viewOf(owned))}</section>`,
      )}`,
      ),
  };
}
