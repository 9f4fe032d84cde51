/**
 * The contract of the dashboard: what a plugin shows there, as types alone. Whoever renders returns text or
 * nodes made with `html` or `h` from `mountkeeper`; every value in them is escaped, so names of files need no
 * care.
 */
import type { ComponentChildren } from 'preact';
import type { Awaitable, Release } from './platform.ts';

/**
 * One text for all languages, or one for each, by language: `{ en: 'Garden', zh: '花园' }`. English stands in
 * for what is missing.
 */
export type LocalText = string | Readonly<Record<string, string>>;

/** Text and nodes. A text is shown as it is: `<b>` is four characters. */
export type Content = ComponentChildren;

/** What came of an action; shown where it was clicked. */
export interface Outcome {
  readonly ok: boolean;
  /** Nothing is said where it is empty. */
  readonly message: LocalText;
  /** Shown behind the message; may hold nodes with `hx-swap-oob`. */
  readonly content?: Content;
}

export interface ActionButton {
  /** A key of `actions`. */
  readonly action: string;
  readonly label: LocalText;
  /** Asked before anything is done: what will be interrupted, and for whom. */
  readonly confirm?: LocalText;
  /** Sent along; read as `view.form`. */
  readonly values?: Readonly<Record<string, string>>;
}

/** What one rendering is for, and the words and formats of its reader's language. */
export interface View {
  /** Such as `en` or `zh`. */
  readonly language: string;
  /** The name under which the reader reaches this machine; for addresses that are to be copied. */
  readonly host: string;
  /** The share whose page or card this is; undefined elsewhere. */
  readonly share: string | undefined;
  /** The query of the page or the part. */
  readonly query: Readonly<Record<string, string>>;
  /** What was sent with an action; empty elsewhere. */
  readonly form: Readonly<Record<string, string>>;
  text(text: LocalText): string;
  /**
   * A message of the tab's own `texts`, in ICU's message format: `{count, plural, one {# file} other {#
   * files}}`. `<name>…</name>` in a message is given to the function of that name in `values`.
   */
  t(key: string, values?: MessageValues): Content;
  /** A message without nodes, as plain text: for attributes and outcomes. */
  plain(key: string, values?: Readonly<Record<string, string | number>>): string;
  /** Sizes in bytes and rates in bytes per second, as everywhere in Mountkeeper. */
  bytes(bytes: number): string;
  rate(bytesPerSecond: number): string;
  number(value: number): string;
  /** A moment, in milliseconds since the epoch: shown in the reader's time zone. `ago` counts from it. */
  time(at: number, style?: 'time' | 'ago'): Content;
  /** A button that runs one of the tab's actions and shows what came of it beside itself. */
  button(button: ActionButton): Content;
  /** The address of one of the tab's `parts`, for `hx-get`. */
  part(name: string, query?: Readonly<Record<string, string | number>>): string;
  /** The address of one of the tab's `actions`, for `hx-post`. */
  action(name: string): string;
}

export type MessageValues = Readonly<
  Record<string, string | number | Content | ((chunks: Content[]) => Content)>
>;

/** A tab, a card or a share's panel of the dashboard. */
export interface Tab {
  /** Kebab-case; unique among all plugins. */
  readonly id: string;
  readonly title: LocalText;
  /** An outline of 24 × 24: the `d` of an SVG path. */
  readonly icon?: string;
  /** A tab of its own (default), a card on the overview, or a panel on the page of every share. */
  readonly place?: 'tab' | 'card' | 'share';
  /** Lower comes first; default 50. */
  readonly order?: number;
  /** Messages by language and key, for `view.t`. */
  readonly texts?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * What it shows; nothing, where it returns null. Drawn anew as `watch` says, and sent only when something
   * has changed.
   */
  render(view: View): Awaitable<Content>;
  /** Forms and the like: drawn when the page is opened, and never under somebody's hands. */
  controls?(view: View): Content;
  /** Fragments of its own, answered at `view.part(name)`. */
  readonly parts?: Readonly<Record<string, (view: View) => Awaitable<Content>>>;
  /** What can be done, at `view.action(name)`: always a POST, never from another site. */
  readonly actions?: Readonly<Record<string, (view: View) => Awaitable<Outcome>>>;
  /** With `place: 'share'`: buttons on the share's card and page. */
  readonly buttons?: (view: View) => readonly ActionButton[];
  /**
   * Calls `changed` whenever `render` would return something else. Called when the first reader comes; the
   * release when the last one has gone. Left out: drawn anew with every status that is published.
   */
  readonly watch?: (changed: () => void) => Release;
}

/** A tab and the plugin that declares it. */
export interface OwnedTab {
  readonly plugin: string;
  readonly tab: Tab;
}

/** Tabs, cards and panels of the plugins that are active now. */
export interface TabsService {
  list(): readonly OwnedTab[];
}
