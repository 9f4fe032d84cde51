/**
 * The `View` for renderers: the reader's language and formats, and the addresses of the tab's own parts and
 * actions.
 */
import { formatBytes, formatRate, html, isEnough, QUESTION } from 'mountkeeper';
import type { ActionButton, Content, LocalText, MessageValues, Role, Tab, View } from 'mountkeeper';
import { CATALOGUES, messagesIn, textOf } from './languages.ts';
import type { Catalogue } from './languages.ts';
import { saidIn } from './said.ts';

export interface ViewTraits {
  readonly language: string;
  readonly host: string;
  /** Default `admin`: who reads, where nobody is asked. */
  readonly role?: Role;
  readonly signIn?: string | undefined;
  readonly share?: string | undefined;
  readonly query?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
  readonly isStillLetIn?: (() => boolean) | undefined;
  /** The plugin and tab that it belongs to; the dashboard's own pages have none. */
  readonly tab?: Tab;
}

const NONE: Readonly<Record<string, string>> = {};

export function createView(traits: ViewTraits): View {
  return new ReaderView(traits);
}

/** Whether a tab is shown to somebody. */
export function maySee(role: Role, tab: Tab): boolean {
  return isEnough(role, tab.access?.see);
}

/** Also false for a tab that is not seen. */
export function mayRun(role: Role, tab: Tab | undefined, action: string): boolean {
  const { see, act = {} } = tab?.access ?? {};
  return isEnough(role, see) && isEnough(role, Object.hasOwn(act, action) ? act[action] : undefined);
}

class ReaderView implements View {
  readonly language: string;
  readonly host: string;
  readonly share: string | undefined;
  readonly query: Readonly<Record<string, string>>;
  readonly form: Readonly<Record<string, string>>;
  readonly role: Role;
  readonly signIn: string | undefined;
  readonly isStillLetIn: (() => boolean) | undefined;
  readonly #tab: Tab | undefined;
  readonly #catalogues: readonly (Catalogue | undefined)[];

  constructor({ language, host, role = 'admin', share, query = NONE, form = NONE, ...more }: ViewTraits) {
    const { signIn, tab, isStillLetIn } = more;
    this.language = language;
    this.host = host;
    this.role = role;
    // What is drawn once for many readers must not show what is true of one.
    this.signIn = tab?.isOfSignIn === true ? signIn : undefined;
    this.share = share;
    this.query = query;
    this.form = form;
    this.isStillLetIn = isStillLetIn;
    this.#tab = tab;
    this.#catalogues = tab
      ? [tab.texts?.[language], tab.texts?.['en']]
      : [CATALOGUES[language], CATALOGUES['en']];
  }

  text(text: LocalText): string {
    return textOf(text, this.language);
  }

  said(text: string): string {
    return saidIn(this.language, text);
  }

  t(key: string, values?: MessageValues): Content {
    return messagesIn(this.language).format(key, values, ...this.#catalogues);
  }

  plain(key: string, values?: Readonly<Record<string, string | number>>): string {
    return messagesIn(this.language).plain(key, values, ...this.#catalogues);
  }

  bytes(bytes: number): string {
    return formatBytes(bytes);
  }

  rate(bytesPerSecond: number): string {
    return formatRate(bytesPerSecond);
  }

  number(value: number): string {
    return new Intl.NumberFormat(this.language).format(value);
  }

  /**
   * The page's script rewrites it in the browser's time zone; this text is for readers without scripts. A dash
   * for what is no moment: a plugin may have given it.
   */
  time(at: number, style: 'time' | 'ago' = 'time'): Content {
    if (typeof at !== 'number' || Number.isNaN(new Date(at).getTime())) return '–';
    const iso = new Date(at).toISOString();
    return html`<time datetime=${iso} data-at=${String(at)} data-style=${style}>${iso
      .slice(0, 16)
      .replace('T', ' ')} UTC</time>`;
  }

  may(action: string): boolean {
    return mayRun(this.role, this.#tab, action);
  }

  button({ action, label, about, confirm, values = NONE }: ActionButton): Content {
    if (!this.may(action)) return null;
    const fields = Object.entries({ ...values, ...(this.share === undefined ? {} : { share: this.share }) });
    return html`<form class="act" method="post" action=${this.action(action)} hx-post=${this.action(action)}
      hx-target="find output" hx-swap="innerHTML" hx-disabled-elt="find button" hx-confirm=${
        confirm === undefined ? undefined : this.text(confirm)
      }>
      ${confirm === undefined ? null : html`<input type="hidden" name=${QUESTION} value=${this.text(confirm)} />`}
      ${fields.map(([name, value]) => html`<input type="hidden" name=${name} value=${value} />`)}
      <button type="submit">${this.text(label)}${
        about === undefined ? null : html`<span class="unseen"> <bdi>${about}</bdi></span>`
      }</button><output aria-live="polite"></output></form>`;
  }

  part(name: string, query: Readonly<Record<string, string | number>> = {}): string {
    const all = { ...query, ...(this.share === undefined ? {} : { share: this.share }) };
    const search = new URLSearchParams(
      Object.entries(all).map(([key, value]) => [key, String(value)]),
    ).toString();
    return `/dashboard/parts/${this.#id()}/${encodeURIComponent(name)}${search === '' ? '' : `?${search}`}`;
  }

  action(name: string): string {
    return `/dashboard/do/${this.#id()}/${encodeURIComponent(name)}`;
  }

  #id(): string {
    if (!this.#tab) throw new Error('this view belongs to no tab');
    return this.#tab.id;
  }
}
