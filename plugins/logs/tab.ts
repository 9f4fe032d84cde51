/** The log on the dashboard: the last matching lines, followed while the page is open. */
import { html, inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, PluginContext, Tab, View } from 'mountkeeper';
import type { LogFile } from './log-file.ts';

const TEXTS = readTexts(import.meta.url);
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
const CHOICES = ['trace', 'info', 'warn', 'error'] as const;
/** Lines that are searched. */
const LOOKED_AT = 5_000;
/** Lines that are shown; a page that follows keeps as many. */
const SHOWN = 300;

interface Wanted {
  readonly level: string;
  readonly share: string;
  readonly search: string;
}

function wantedOf({ query, form }: View): Wanted {
  const given = { ...query, ...form };
  return { level: given['level'] ?? 'info', share: given['share'] ?? '', search: given['search'] ?? '' };
}

export function levelOf(line: string): string {
  return /^\S+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b/.exec(line)?.[1]?.toLowerCase() ?? 'info';
}

/**
 * Whether a line has the share's field: written as it is, or in quotes when it contains a space or the
 * like.
 */
export function isAbout(line: string, share: string): boolean {
  return line.includes(` share=${JSON.stringify(share)}`) || `${line} `.includes(` share=${share} `);
}

export function matches(line: string, { level, share, search }: Wanted): boolean {
  const least = LEVELS.indexOf(level as (typeof LEVELS)[number]);
  if (LEVELS.indexOf(levelOf(line) as (typeof LEVELS)[number]) < least) return false;
  if (share !== '' && !isAbout(line, share)) return false;
  return search === '' || line.toLowerCase().includes(search.toLowerCase());
}

function row(line: string): Content {
  const level = levelOf(line);
  const tone = level === 'error' || level === 'fatal' ? 'bad' : level === 'warn' ? 'warn' : undefined;
  return html`<li data-tone=${tone}><bdi>${line}</bdi></li>`;
}

/** What a page tells of its lines: it comes back with each question for new ones. */
interface Told {
  /** Lines that are shown. */
  readonly shown: number;
  /** Lines that were searched for them. */
  readonly of: number;
}

const NOTHING: Told = { shown: 0, of: 0 };

function toldBefore({ query }: View): Told {
  const number = (name: string): number => Math.max(0, Math.trunc(Number(query[name]))) || 0;
  return { shown: number('shown'), of: number('of') };
}

/** Asks for new lines after a second; every five, where no answer came. */
function poller(view: View, wanted: Wanted, from: number, told: Told): Content {
  return html`<div id="log-more" hx-get=${view.part('more', { ...wanted, from, ...told })} hx-swap="outerHTML"
      hx-trigger="load delay:1s, every 5s"></div>`;
}

/** `isOnItsOwn`: it takes the place of the former one by itself, from within an answer about something else. */
function count(view: View, { shown, of }: Told, isOnItsOwn = false): Content {
  return html`<p id="log-count" class="help" hx-swap-oob=${isOnItsOwn ? 'true' : undefined}>${view.t(
    'shown',
    {
      count: shown,
      of,
    },
  )}</p>`;
}

async function lines(file: LogFile, view: View, isOnItsOwn = false): Promise<Content> {
  const wanted = wantedOf(view);
  const page = await file.read({ lines: LOOKED_AT, fromLine: 0 });
  const swap = isOnItsOwn ? 'true' : undefined;
  if (page.totalLines === 0)
    return html`<div id="log-view" hx-swap-oob=${swap}><p class="empty">${view.t('no-file')}</p>${poller(
      view,
      wanted,
      0,
      NOTHING,
    )}</div>`;
  const found = page.entries.filter((line) => matches(line, wanted)).slice(-SHOWN);
  const told = { shown: found.length, of: page.entries.length };
  const isFollowing = view.query['level'] === undefined || view.query['follow'] === 'on';
  // With the morphing that the page's other parts use, htmx would put new lines into the list with a list around them.
  return html`<div id="log-view" hx-swap-oob=${swap}>${count(view, told)}
    <div class="log-box" tabindex="0" role="region" aria-label=${view.text(inEveryLanguage(TEXTS, 'title'))}>
      <ol id="log-lines" class="log" data-most=${String(SHOWN)} hx-ext="ignore:morph">${found.map(row)}</ol></div>
    ${isFollowing ? poller(view, wanted, page.totalLines, told) : null}</div>`;
}

/** The new lines; everything when the log has become shorter. */
async function more(file: LogFile, view: View): Promise<Content> {
  const from = Number(view.query['from'] ?? 0);
  const wanted = wantedOf(view);
  const page = await file.read({ lines: LOOKED_AT, fromLine: from });
  if (from === 0 || page.totalLines < from)
    return page.totalLines === 0 ? poller(view, wanted, 0, NOTHING) : lines(file, view, true);
  const before = toldBefore(view);
  const found = page.entries.filter((line) => matches(line, wanted));
  const told = {
    shown: Math.min(SHOWN, before.shown + found.length),
    of: before.of + page.entries.length,
  };
  return [
    poller(view, wanted, from + page.entries.length, told),
    page.entries.length === 0 ? null : count(view, told, true),
    found.length === 0 ? null : html`<ol hx-swap-oob="beforeend:#log-lines">${found.map(row)}</ol>`,
  ];
}

function filters(ctx: PluginContext, view: View): Content {
  const wanted = wantedOf(view);
  const shares = ctx.use('config').current.config.shares.map(({ name }) => name);
  return html`<form class="filters" method="get" hx-get=${view.part('lines')} hx-target="#log-view" hx-swap="outerHTML"
      hx-trigger="input delay:200ms, submit">
    <label>${view.t('level')} <select name="level">${CHOICES.map(
      (one) => html`<option value=${one} selected=${one === wanted.level}>${view.t(`level-${one}`)}</option>`,
    )}</select></label>
    <label>${view.t('share')} <select name="share"><option value="">${view.t('any-share')}</option>
      ${shares.map(
        (one) => html`<option value=${one} selected=${one === wanted.share}>${one}</option>`,
      )}</select></label>
    <label>${view.t('search')} <input type="search" name="search" value=${wanted.search} /></label>
    <label><input type="checkbox" name="follow" value="on" checked /> ${view.t('follow')}</label></form>`;
}

export function logsTab(ctx: PluginContext, file: LogFile): Tab {
  return {
    id: 'logs',
    access: { see: 'operator' },
    order: 80,
    title: inEveryLanguage(TEXTS, 'title'),
    texts: TEXTS,
    icon: 'M5 6h14M5 10h14M5 14h9M5 18h11',
    controls: (view) =>
      html`<div>${filters(ctx, view)}<div id="log-view" hx-get=${view.part('lines')} hx-trigger="load"
          hx-swap="outerHTML"></div></div>`,
    render: () => null,
    watch: () => () => undefined,
    parts: { lines: (view) => lines(file, view), more: (view) => more(file, view) },
  };
}
