/**
 * Tabs of a plugin in its own process. What it draws crosses as data: names, attributes and texts. What it
 * asks of the view (a word in the reader's language, a button) crosses as a place where the daemon puts the
 * view's own answer: so words, formats and addresses are the dashboard's, as everywhere.
 */
import type { Content, LocalText, Outcome, Tab, View } from '../../../contract/dashboard.ts';
import { h } from '../../../sdk/html.ts';
import { isTable } from '../../../sdk/toml/document.ts';
import { NotCarried } from '../protocol.ts';
import { allowedElement, allowedValue } from './allowed-content.ts';

export interface CarriedTab extends Pick<Tab, 'id' | 'title' | 'icon' | 'place' | 'order' | 'texts'> {
  readonly parts: readonly string[];
  readonly actions: readonly string[];
}

/** Which of the tab's functions. */
export interface TabCall {
  readonly fn: 'render' | 'part' | 'action';
  /** Of the part or action. */
  readonly name: string;
  readonly view: Pick<View, 'language' | 'host' | 'share' | 'query' | 'form'>;
}

interface ViewCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** What was drawn: `content` holds places for the answers to `calls`. */
export interface Drawn {
  readonly content: unknown;
  readonly calls: readonly ViewCall[];
}

/** Of these the view's answer is a text, which may stand inside another. */
const TEXTS = ['text', 'said', 'plain', 'bytes', 'rate', 'number', 'part', 'action'] as const;
const NODES = ['t', 'time', 'button'] as const;
const CALLS: ReadonlySet<string> = new Set([...TEXTS, ...NODES]);
/** Around the place of a text: of Unicode's private use. */
const [OPEN, CLOSE] = ['\u{e000}', '\u{e001}'];
/** An element that stands for a node of the view's. */
const PLACE = 'carried-call';
const PLACES = /\u{e000}(\d{1,5})\u{e001}/gu;
/** Without what is asked of the view 50 ms of the daemon's processor time, in which nothing else runs. */
const MOST_NODES = 10_000;
const DEEPEST = 60;
/** Of a whole page, in characters: places show one text again and again. */
const MOST_CHARACTERS = 2_097_152;
/** Nodes and attributes between two looks at the time that is left. */
const STEPS_A_LOOK = 32;
/** Of what the view is asked with, in characters: a message may show it many times. */
const LONGEST_ARGUMENT = 10_000;

/** Throws a `NotCarried`. */
export function carriedTab(tab: Tab): CarriedTab {
  const { id, title, icon, place, order, texts, parts = {}, actions = {} } = tab;
  for (const fn of ['controls', 'buttons'] as const)
    if (tab[fn])
      throw new NotCarried(`${fn} of ctx.tab("${id}")`, 'since the dashboard does not wait for them');
  const plain = { id, title, icon, place, order, texts };
  return {
    ...(JSON.parse(JSON.stringify(plain)) as typeof plain as Pick<Tab, 'id' | 'title'>),
    parts: Object.keys(parts),
    actions: Object.keys(actions),
  };
}

/** In the runner: calls one of a tab's functions. The outcome of an action has its `message` beside `drawn`. */
export async function drawTab(tab: Tab, { fn, name, view: data }: TabCall): Promise<object> {
  const calls: ViewCall[] = [];
  const view = placingView(data, calls);
  const of = fn === 'render' ? tab : fn === 'part' ? tab.parts?.[name] : tab.actions?.[name];
  if (!of) throw new Error(`it has no ${fn} "${name}"`);
  const given = typeof of === 'function' ? await of(view) : await tab.render(view);
  if (fn !== 'action') return { content: plainNode(given as Content), calls };
  const { ok, message, content } = given as Outcome;
  return { ok, message, content: plainNode(content), calls };
}

function placingView(data: TabCall['view'], calls: ViewCall[]): View {
  const note = (name: string, args: readonly unknown[]): number => {
    if (args.some((arg) => isTable(arg) && Object.values(arg).some((one) => typeof one === 'function')))
      throw new Error(
        `functions in the values of view.${name} cannot be carried out of a process of its own`,
      );
    return calls.push({ name, args: args.map((arg) => (isTable(arg) ? plainTable(arg) : arg)) }) - 1;
  };
  const texts = TEXTS.map((name) => [name, (...args: unknown[]) => `${OPEN}${note(name, args)}${CLOSE}`]);
  const nodes = NODES.map((name) => [name, (...args: unknown[]) => h(PLACE, { at: note(name, args) })]);
  // A tab's `access` is not carried, so administrators alone see it.
  const reader = { role: 'admin', may: () => true } as const;
  return { ...data, ...reader, ...Object.fromEntries([...texts, ...nodes]) } as View;
}

/** Values of a message may be nodes. */
function plainTable(table: Record<string, unknown>): object {
  const isNode = (value: unknown): boolean => isTable(value) && 'props' in value && 'type' in value;
  return Object.fromEntries(
    Object.entries(table).map(([key, value]) => [
      key,
      isNode(value) ? { node: plainNode(value as never) } : value,
    ]),
  );
}

type Component = (props: object) => Content;

/** Texts, lists, and `{ type, props, children }` for nodes; components are drawn. */
function plainNode(content: Content): unknown {
  if (Array.isArray(content)) return content.map(plainNode);
  if (typeof content === 'string') return content;
  if (typeof content === 'number' || typeof content === 'bigint') return String(content);
  if (!isTable(content)) return null;
  const { type, props = {} } = content as { type?: unknown; props?: Record<string, unknown> };
  if (typeof type === 'function') return plainNode((type as Component)(props));
  const { children, ...attributes } = props;
  return { type, props: attributes, children: plainNode(children as Content) };
}

/** Throws when the time for a drawing is up. */
type Check = () => void;

/** In the daemon: the content with the view's answers in their places. Throws for what is no content. */
export function contentOf(drawn: unknown, view: View, check: Check): Content {
  const { content } = (drawn ?? {}) as Partial<Drawn>;
  return builderOf(drawn, view, check).content(content, 0);
}

function builderOf(drawn: unknown, view: View, check: Check): Builder {
  const { calls } = (drawn ?? {}) as Partial<Drawn>;
  return new Builder(Array.isArray(calls) ? calls : [], view, check);
}

export function outcomeOf(given: unknown, view: View, check: Check): Outcome {
  const { ok, message, content } = (given ?? {}) as Partial<Outcome>;
  const isText = typeof message === 'string' || isTable(message);
  if (typeof ok !== 'boolean' || !isText) throw new Error('an action gave no outcome');
  const builder = builderOf(given, view, check);
  const shown = builder.content(content, 0);
  return { ok, message: builder.message(message), ...(content !== null && { content: shown }) };
}

/** By these the page asks the server, with the rights of whoever looks at it; some of them without a click. */
const ASKING: ReadonlySet<string> = new Set(['hx-get', 'hx-post', 'action', 'formaction']);
const HERE = 'http://here.invalid';

/** As browsers read it; undefined for another server's. */
function pathOf(address: unknown): string | undefined {
  const text = String(address);
  if (!URL.canParse(text, HERE)) return undefined;
  const { origin, pathname } = new URL(text, HERE);
  return origin === HERE ? pathname : undefined;
}

/** As browsers read an address: without control characters and blanks before and within its scheme. */
function isCode(value: unknown): boolean {
  return typeof value === 'string' && /^javascript:/i.test(value.replace(/[\u0000-\u0020]/g, ''));
}

class Builder {
  readonly #calls: readonly ViewCall[];
  readonly #view: View;
  readonly #check: Check;
  #nodes = 0;
  #steps = 0;
  #characters = 0;

  constructor(calls: readonly ViewCall[], view: View, check: Check) {
    this.#calls = calls;
    this.#view = view;
    this.#check = check;
  }

  content(data: unknown, depth: number): Content {
    this.#step();
    this.#nodes += 1;
    if (this.#nodes > MOST_NODES || depth > DEEPEST) throw new Error('it drew more than can be shown');
    if (typeof data === 'string') return this.#text(data, depth);
    if (Array.isArray(data)) return data.map((one) => this.content(one, depth + 1));
    if (!isTable(data)) return null;
    const { type, props, children } = data;
    if (type === PLACE) return this.#answer(isTable(props) ? props['at'] : undefined, depth) as Content;
    const element = allowedElement(type);
    return h(element, this.#attributes(element, props, depth), this.content(children, depth + 1));
  }

  message(message: LocalText): LocalText {
    return this.#argument(message, 0) as LocalText;
  }

  #attributes(element: string, props: unknown, depth: number): Record<string, string | number | boolean> {
    const plain = Object.entries(isTable(props) ? props : {}).flatMap(([name, value]) => {
      this.#step();
      if (!['string', 'number', 'boolean'].includes(typeof value)) return [];
      const full = typeof value === 'string' ? this.#text(value, depth) : (value as number | boolean);
      const allowed = allowedValue(element, name, full, this.#prefix);
      const isRefused =
        allowed === undefined || isCode(allowed) || (ASKING.has(name) && !this.#isOwn(allowed));
      return isRefused ? [] : [[name, allowed] as const];
    });
    return Object.fromEntries(plain);
  }

  /** Of ids: nothing of the dashboard's own has one that begins so, and no tab's id has what ends it. */
  get #prefix(): string {
    return `of-${pathOf(this.#view.part(''))?.split('/').filter(Boolean).at(-1) ?? ''}_`;
  }

  /** Of the tab's own parts and actions. What they answer is drawn here, too; a route's answer could hold anything. */
  #isOwn(address: unknown): boolean {
    const asked = pathOf(address);
    const own = [this.#view.part(''), this.#view.action('')].map(pathOf);
    return own.some((one) => one !== undefined && asked?.startsWith(one) === true);
  }

  #step(): void {
    this.#steps += 1;
    if (this.#steps % STEPS_A_LOOK === 0) this.#check();
  }

  #text(text: string, depth: number): string {
    this.#count(text.length);
    return text.replace(PLACES, (_, at: string) => String(this.#answer(Number(at), depth + 1)));
  }

  #count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MOST_CHARACTERS) throw new Error('it drew more than can be shown');
  }

  /** A message may hold one value a thousand times: that is cheap until it is written out. */
  #countContent(content: unknown): void {
    if (typeof content === 'string') return this.#count(content.length);
    if (Array.isArray(content)) for (const one of content) this.#countContent(one);
    else if (isTable(content) && isTable(content['props'])) this.#countContent(content['props']['children']);
  }

  #answer(at: unknown, depth: number): unknown {
    const { name = '', args = [] } = this.#calls[Number(at)] ?? {};
    if (!CALLS.has(name) || !Array.isArray(args)) throw new Error('it drew what the view does not have');
    this.#nodes += 1;
    if (this.#nodes > MOST_NODES) throw new Error('it drew more than can be shown');
    this.#check();
    const full = args.map((arg) => this.#argument(arg, depth + 1));
    const call = this.#view[name as 'plain'] as unknown as (...all: unknown[]) => unknown;
    const answer = call.apply(this.#view, full);
    this.#countContent(answer);
    return answer;
  }

  /** Texts in it may be places themselves; nodes among the values of a message are drawn. */
  #argument(value: unknown, depth: number): unknown {
    if (depth > DEEPEST) throw new Error('it drew more than can be shown');
    if (typeof value === 'string') {
      const text = this.#text(value, depth);
      if (text.length <= LONGEST_ARGUMENT) return text;
      throw new Error(`it gave the view a text of more than ${LONGEST_ARGUMENT} characters`);
    }
    if (!isTable(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [
        key,
        isTable(one) && 'node' in one ? this.content(one['node'], depth + 1) : this.#argument(one, depth + 1),
      ]),
    );
  }
}
