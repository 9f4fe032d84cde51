/**
 * Contract of the dashboard: what a plugin shows there, as types alone. Renderers return text or nodes made
 * with `html` or `h` from `mountkeeper`; every value in them is escaped, so file names need no care.
 */
import type { ComponentChildren } from 'preact';
import type { Role } from './http.ts';
import type { Awaitable, Release } from './platform.ts';

/**
 * One text for all languages, or one per language: `{ en: 'Garden', zh: '花园' }`. English is used where a
 * language is missing.
 */
export type LocalText = string | Readonly<Record<string, string>>;

/** Text and nodes. A text is shown as it is: `<b>` is four characters. */
export type Content = ComponentChildren;

/** Result of an action; shown next to its button. */
export interface Outcome {
  readonly ok: boolean;
  /** Empty: nothing is shown. */
  readonly message: LocalText;
  /** Shown behind the message; may hold nodes with `hx-swap-oob`. */
  readonly content?: Content;
  /**
   * True only while the button of the click is there, as that a file goes up next: it goes with the button. Else it
   * stays for a while at the end of the panel.
   */
  readonly endsWithButton?: boolean;
  /** What it acted on, for the record of changes beside the share; shown nowhere. No secrets. */
  readonly about?: Readonly<Record<string, string>>;
}

export interface ActionButton {
  /** A key of `actions`. */
  readonly action: string;
  readonly label: LocalText;
  /** What it acts on, such as a file's name: read to who cannot see the row that the button stands in. */
  readonly about?: string;
  /** The question asked before the action runs: what will be interrupted, and for whom. */
  readonly confirm?: LocalText;
  /** Form values sent with the action; read as `view.form`. */
  readonly values?: Readonly<Record<string, string>>;
}

/** The page or fragment that is rendered, with the texts and formats of the reader's language. */
export interface View {
  /** Language tag, such as `en` or `zh`. */
  readonly language: string;
  /** The host name that the reader's browser used; for addresses that the reader is to copy. */
  readonly host: string;
  /** The share whose page or card this is; undefined elsewhere. */
  readonly share: string | undefined;
  /** Query parameters of the page or the part. */
  readonly query: Readonly<Record<string, string>>;
  /** Form values sent with an action; empty elsewhere. */
  readonly form: Readonly<Record<string, string>>;
  /** The reader's role: what is refused to it need not be shown. */
  readonly role: Role;
  /** The reader's own sign-in (`SignIn.id`), in tabs that are `isOfSignIn`; undefined elsewhere. */
  readonly signIn?: string | undefined;
  /** Of an action: whether its sender would be let in now. For `ConfigSubmission.isStillLetIn`. */
  readonly isStillLetIn?: (() => boolean) | undefined;
  /** Whether the reader may run this action of the tab; for forms of a tab's own. */
  may(action: string): boolean;
  text(text: LocalText): string;
  /**
   * A reason or notice of Mountkeeper's own, which it says in English, in the reader's language. What is not known,
   * such as a server's own words, stays as it is.
   */
  said(text: string): string;
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
  /**
   * A moment, in milliseconds since the epoch, in the reader's time zone. `ago` shows the time since then.
   */
  time(at: number, style?: 'time' | 'ago'): Content;
  /**
   * A button that runs one of the tab's actions and shows the outcome next to it. Nothing for readers who may not
   * run it.
   */
  button(button: ActionButton): Content;
  /** The address of one of the tab's `parts`, for `hx-get`. */
  part(name: string, query?: Readonly<Record<string, string | number>>): string;
  /** The address of one of the tab's `actions`, for `hx-post`. */
  action(name: string): string;
}

export type MessageValues = Readonly<
  Record<string, string | number | Content | ((chunks: Content[]) => Content)>
>;

/** Who sees a tab, and who may run its actions. */
export interface TabAccess {
  /** The least role that sees it, and its parts. */
  readonly see: Role;
  /** By action: the least role that may run it. What is not named here is for `admin`. */
  readonly act?: Readonly<Record<string, Role>>;
}

/** A tab, a card or a share's panel of the dashboard. */
export interface Tab {
  /** Kebab-case; unique among all plugins. */
  readonly id: string;
  readonly title: LocalText;
  /** An outline icon of 24 × 24: the `d` of an SVG path. */
  readonly icon?: string;
  /** A tab of its own (default), a card on the overview, or a panel on the page of every share. */
  readonly place?: 'tab' | 'card' | 'share';
  /** Absent: administrators alone see it. */
  readonly access?: TabAccess;
  /** Lower comes first; default 50. */
  readonly order?: number;
  /** Messages by language and key, for `view.t`. */
  readonly texts?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * What it shows is another for each sign-in (`view.signIn`). Other tabs are drawn once for all readers of one role
   * and language.
   */
  readonly isOfSignIn?: boolean;
  /** The content; null shows nothing. Rendered again as `watch` says, and sent only when it has changed. */
  render(view: View): Awaitable<Content>;
  /**
   * Forms and other inputs: rendered when the page is opened, and never replaced while somebody uses them.
   */
  controls?(view: View): Content;
  /**
   * Where it differs from the last time (`===`), `controls` and `buttons` are drawn anew on open pages, too; what a
   * form has that somebody has typed into stays. Asked with every published status. Absent: they are as when the page
   * was opened.
   */
  readonly controlsVersion?: () => unknown;
  /** Fragments that the tab loads by itself; each is served at `view.part(name)`. */
  readonly parts?: Readonly<Record<string, (view: View) => Awaitable<Content>>>;
  /** Actions, served at `view.action(name)`: always a POST, refused from another site. */
  readonly actions?: Readonly<Record<string, (view: View) => Awaitable<Outcome>>>;
  /** Names of actions that change nothing: left out of the record of changes. */
  readonly questions?: readonly string[];
  /** With `place: 'share'`: buttons on the share's card and page. */
  readonly buttons?: (view: View) => readonly ActionButton[];
  /**
   * Calls `changed` whenever `render` would return something else. Called when the first reader opens the
   * page; its release when the last one has left. Absent: rendered again with every published status.
   */
  readonly watch?: (changed: () => void) => Release;
}

/** A tab and the plugin that declares it. */
export interface OwnedTab {
  readonly plugin: string;
  readonly tab: Tab;
}

/** Where files of shares can be downloaded. Provided by the plugin `files`. */
export interface FileDownloads {
  /**
   * An address on the daemon's own host. `path` is relative to the share. Undefined while files cannot be
   * downloaded, for example without a password.
   */
  address(share: string, path: string): string | undefined;
}

/** Tabs, cards and panels of the plugins that are active now. */
export interface TabsService {
  list(): readonly OwnedTab[];
}
