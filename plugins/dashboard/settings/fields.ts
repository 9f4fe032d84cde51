/**
 * The settings form: the keys of the schema with the values of the text. The text is authoritative; a field
 * changes its key in the text.
 */
import { html } from 'mountkeeper';
import type { ConfigKey, Content, TomlEdit, View } from 'mountkeeper';
import { isAddable } from './additions.ts';
import { offersOf } from './offers.ts';
import type { Names, Offers } from './offers.ts';

export type Path = readonly (string | number)[];
type Table = Readonly<Record<string, unknown>>;

/** One section of the form: a table, or one item of an array of tables. */
interface Section {
  readonly path: Path;
  /** The array's name, for an item of an array. */
  readonly array: string | undefined;
  readonly keys: readonly ConfigKey[];
}

const CHOICE = /^"[^"]*"(?: \| "[^"]*")*$/;
const WHOLE = /^-?\d{1,15}$/;
/** An empty text, as it is typed where an empty field means the default. */
const EMPTY = '""';
/** New options can be added only in the text. */
const OPTIONS = 'options';

/** Plugins are switched on a page of their own, and in the file; their log's level by command, and in the file. */
export function isSwitch(path: string): boolean {
  const [first, , key] = path.split('.');
  return (
    first === 'plugins' &&
    (key === undefined || key === 'enabled' || key === 'isolation' || key === 'log_level')
  );
}

/** Keys by section; arrays end in `[]`: `shares[]`, `web`. */
function bySection(keys: readonly ConfigKey[]): ReadonlyMap<string, readonly ConfigKey[]> {
  const sections = new Map<string, ConfigKey[]>();
  for (const key of keys) {
    // A table of free keys, such as `groups`, is a section of its own.
    const dot = key.path.lastIndexOf('.');
    const section = dot < 0 ? key.path : key.path.slice(0, dot);
    if (isSwitch(key.path)) continue;
    sections.set(section, [...(sections.get(section) ?? []), key]);
  }
  return sections;
}

export function at(document: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, segment) => (value as Record<string | number, unknown> | undefined)?.[segment],
    document,
  );
}

function sectionsOf(document: Table, keys: readonly ConfigKey[]): readonly Section[] {
  return [...bySection(keys)].flatMap(([name, own]): readonly Section[] => {
    if (!name.endsWith('[]')) return [{ path: name.split('.'), array: undefined, keys: own }];
    const array = name.slice(0, -2);
    const items = at(document, array.split('.'));
    const count = Array.isArray(items) ? items.length : 0;
    return Array.from({ length: count }, (_, index) => ({
      path: [...array.split('.'), index],
      array,
      keys: own,
    }));
  });
}

/** What only a command can make, which knows the secret: here stands its hash alone. */
const MADE_BY: Readonly<Record<string, { readonly key: string; readonly command: string }>> = {
  'web.users': { key: 'made-hash', command: 'mountkeeper hash-password' },
  'web.tokens': { key: 'made-token', command: 'mountkeeper token new NAME --role viewer' },
};

/** Tables of lists, each under a name that people choose. */
export const NAMED: ReadonlySet<string> = new Set(['groups']);

export function fieldsPanel(
  document: Table,
  keys: readonly ConfigKey[],
  view: View,
  known: Names = () => [],
): Content {
  const sections = sectionsOf(document, keys);
  const arrays = [...bySection(keys).keys()]
    .filter((name) => name.endsWith('[]'))
    .map((name) => name.slice(0, -2));
  const plain = sections.filter(({ array }) => array === undefined);
  return html`<div
    class="fields"
    hx-include="#settings-text"
    hx-target="#settings-verdict"
    hx-swap="innerHTML"
    hx-sync=".settings:queue all"
  >
    ${arrays.map((array) =>
      arrayPanel(
        array,
        sections.filter((one) => one.array === array),
        { document, view, known },
      ),
    )}
    ${plain.map(
      (section) =>
        html`<details class="card" data-section=${section.path.join('.')}>
          <summary><strong>${section.path.join('.')}</strong></summary>
          ${
            NAMED.has(section.path.join('.'))
              ? namedLists(section, { document, view, known })
              : sectionFields(section, { document, view, known })
          }
        </details>`,
    )}
  </div>`;
}

interface Drawing {
  readonly document: Table;
  readonly view: View;
  readonly known: Names;
}

function arrayPanel(array: string, sections: readonly Section[], drawing: Drawing): Content {
  const { document, view } = drawing;
  return html`<details class="card" data-section=${array} open=${array === 'shares'}>
    <summary><strong>${array}</strong> <small>${view.number(sections.length)}</small></summary>
    ${sections.map(
      (section) =>
        html`<details class="item" open=${sections.length === 1}>
          <summary><bdi>${titleOf(at(document, section.path) as Table)}</bdi></summary>
          ${sectionFields(section, drawing)}
          <div class="actions">
            <button type="button" class="quiet" ...${posting(view, 'remove', section.path)}>
              ${view.t('remove')}
            </button>
          </div>
        </details>`,
    )}
    ${madeBy(array, view)}
    ${
      isAddable(array)
        ? html`<div class="actions"><button type="button" ...${posting(view, 'add', [array])}>${view.t(
            'add',
          )}</button></div>`
        : null
    }
  </details>`;
}

/** Each with a button that takes it away, and a field for the name of the next one. */
function namedLists(section: Section, drawing: Drawing): Content {
  const { path, keys } = section;
  const { document, view } = drawing;
  const id = `name-${path.join('-')}`;
  const lists = at(document, path);
  const names = typeof lists === 'object' && lists !== null ? Object.keys(lists) : [];
  return html`${keys.map((key) => html`<p class="help">${described(key, view)}</p>`)}
    ${names.map(
      (name) =>
        html`<div class="item" key=${name}>
          ${optionFields(keys, path, [name], drawing)}
          <div class="actions">
            <button type="button" class="quiet" ...${posting(view, 'remove', [...path, name])}>
              ${view.t('remove')}<span class="unseen"> <bdi>${name}</bdi></span>
            </button>
          </div>
        </div>`,
    )}
    <div class="actions">
      <label for=${id}>${view.t('add-name')}</label>
      <input id=${id} name="entry" autocomplete="off" spellcheck="false" />
      <button type="button" hx-include=${`#settings-text, #${id}`} ...${posting(view, 'add', path)}>
        ${view.t('add')}
      </button>
    </div>`;
}

function madeBy(array: string, view: View): Content {
  const made = MADE_BY[array];
  return (
    made && html`<p class="help">${view.t(made.key, { command: html`<code>${made.command}</code>` })}</p>`
  );
}

function titleOf(item: Table): string {
  const { name, share, path } = item;
  return [name ?? share, path].filter((one) => typeof one === 'string' && one !== '').join(' / ');
}

function posting(view: View, action: string, path: Path): Readonly<Record<string, string>> {
  return { 'hx-post': view.action(action), 'hx-vals': JSON.stringify({ path: JSON.stringify(path) }) };
}

function sectionFields({ path, keys }: Section, drawing: Drawing): Content {
  const { document, view, known } = drawing;
  return keys.flatMap((key) => {
    const name = key.path.slice(key.path.lastIndexOf('.') + 1);
    const own = [...path, name];
    if (name !== OPTIONS)
      return [
        field({ key, path: own, value: at(document, own), offers: offersOf(key, document, known) }, view),
      ];
    const options = at(document, own);
    const names = typeof options === 'object' && options !== null ? Object.keys(options) : [];
    return optionFields([key], own, names, drawing);
  });
}

/** Of keys that no schema names. */
function optionFields(
  keys: readonly ConfigKey[],
  path: Path,
  names: readonly string[],
  { document, view }: Drawing,
): readonly Content[] {
  const type = NAMED.has(path.join('.')) ? 'array of string' : 'string';
  const traits = { type, description: '', default: undefined, translations: {} };
  return keys.flatMap((key) =>
    names.map((name) => {
      const own = [...path, name];
      return field({ key: { ...key, ...traits }, path: own, value: at(document, own) }, view);
    }),
  );
}

interface Field {
  readonly key: ConfigKey;
  readonly path: Path;
  readonly value: unknown;
  readonly offers?: Offers | undefined;
}

/** Dotted path, as in problems and differences. */
export function dotted(path: Path): string {
  return path.reduce<string>(
    (text, segment) =>
      typeof segment === 'number' ? `${text}[${segment}]` : text === '' ? segment : `${text}.${segment}`,
    '',
  );
}

function field({ key, path, value, offers }: Field, view: View): Content {
  const id = `field-${dotted(path).replaceAll(/[^\w-]/g, '_')}`;
  const byDefault = key.default === undefined ? undefined : shownValue(key.default);
  return html`<div class="field" data-field=${dotted(path)}>
    <label for=${id}
      ><code>${String(path.at(-1))}</code>
      <span
        class="badge"
        data-tone=${key.tier === 'live' ? 'good' : 'off'}
        title=${view.plain(`tier-${key.tier}-help`)}
        >${view.t(`tier-${key.tier}`)}</span
      ></label
    >
    ${input({ key, path, value, offers }, { id, byDefault, view })}
    <p class="help" id=${`${id}-help`}>
      ${described(key, view)}${unitOf(key, view)}${possible(
        key,
        offers,
        view,
      )}${key.fileOnly === false ? null : view.t('by-file-only')}
    </p>
    <div class="problems" id=${`${id}-problem`} hidden></div>
  </div>`;
}

/** In the reader's language where the key's owner brings it, else as the schema says it: in English. */
function described({ description, translations }: ConfigKey, { language }: View): Content {
  if (description === '') return null;
  const own = Object.hasOwn(translations, language) ? translations[language] : undefined;
  return html`<span lang=${own === undefined ? 'en' : language}>${own ?? description}</span> `;
}

/** What its text is made from. */
function unitOf({ type }: ConfigKey, view: View): Content {
  if (['duration', 'size', 'rate'].includes(type)) return html`${view.t(`unit-${type}`)} `;
  return type.startsWith('array of') ? html`${view.t('unit-list')} ` : null;
}

/** A list is typed: what it may hold is named beside it. */
function possible({ type }: ConfigKey, offers: Offers | undefined, view: View): Content {
  if (!offers || !type.startsWith('array of')) return null;
  const { values } = offers;
  return html`${view.t('offered', { values: html`<code>${values.join(', ')}</code>` })} `;
}

interface Input {
  readonly id: string;
  readonly byDefault: string | undefined;
  readonly view: View;
}

/** All values that a key takes; undefined where it takes others, too. */
function choicesOf({
  key: { type, default: byDefault },
  value,
  offers,
}: Field): readonly string[] | undefined {
  if (type === 'boolean') return ['true', 'false'];
  if (CHOICE.test(type)) return type.split(' | ').map((one) => one.slice(1, -1));
  if (offers?.isWhole !== true || type.startsWith('array of')) return undefined;
  // What stands there may be of a plugin that is off, or a name that is not there yet.
  const own = typeof value === 'string' ? typeable(value, byDefault) : '';
  return [...new Set([...offers.values, ...(own === '' ? [] : [own])])];
}

function input(shown: Field, drawn: Input): Content {
  const { key, path } = shown;
  const { id, view } = drawn;
  const attributes = {
    id,
    name: 'value',
    disabled: key.fileOnly !== false,
    'aria-describedby': `${id}-help ${id}-problem`,
    'hx-trigger': 'change',
    ...posting(view, 'set', path),
  };
  const choices = choicesOf(shown);
  return choices
    ? html`<select ...${attributes}>${options(choices, shown, drawn)}</select>`
    : textInput(attributes, shown, drawn);
}

function options(choices: readonly string[], { key, value }: Field, { byDefault, view }: Input): Content {
  const chosen = value === undefined ? undefined : typeable(value, key.default);
  return html`<option value="" selected=${chosen === undefined}>
      ${byDefault === undefined ? '–' : view.t('default-is', { value: word(byDefault, view) })}
    </option>
    ${choices.map((one) => html`<option value=${one} selected=${chosen === one}>${word(one, view)}</option>`)}`;
}

function textInput(
  attributes: Readonly<Record<string, unknown>>,
  { key, value, offers }: Field,
  { id, byDefault }: Input,
): Content {
  const isSecret = key.secret || isMask(value);
  const proposed = key.type.startsWith('array of') ? undefined : offers?.values;
  const list = `${id}-offers`;
  return html`<input
    ...${attributes}
    list=${proposed && list}
    type=${isSecret ? 'password' : 'text'}
    autocomplete=${isSecret ? 'new-password' : 'off'}
    value=${value === undefined ? '' : typeable(value, key.default)}
    placeholder=${byDefault}
    spellcheck="false"
  />${proposed && html`<datalist id=${list}>${proposed.map((one) => html`<option value=${one} />`)}</datalist>`}`;
}

/** An empty text that stands in place of another default is written as TOML does, to be told from none. */
function typeable(value: unknown, byDefault: unknown): string {
  return value === '' && typeof byDefault === 'string' && byDefault !== '' ? EMPTY : shownValue(value);
}

function isMask(value: unknown): boolean {
  return value === '********';
}

function word(value: string, view: View): Content {
  return value === 'true' || value === 'false' ? view.t(value === 'true' ? 'yes' : 'no') : value;
}

export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return shownList(value);
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

/** With commas between them; as TOML writes it where that would be read as another list. */
function shownList(value: readonly unknown[]): string {
  const text = value.map(String).join(', ');
  const isSame = value.length > 0 && JSON.stringify(listOf(text)) === JSON.stringify(value);
  return isSame ? text : JSON.stringify(value);
}

function numberOf(text: string): number | string {
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

function listOf(text: string): unknown {
  if (text.startsWith('[')) {
    try {
      return JSON.parse(text);
    } catch {
      // A text that only begins so.
    }
  }
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

const REFERENCE = /^\{\s*(env|file|credential)\s*=\s*("[^"]*"|'[^']*')\s*\}$/;

/** A secret, or where it is kept, as the help of its field writes that. */
function textOrReference(text: string, type: string): string | Readonly<Record<string, string>> {
  const [, form, name] = ['secret', 'string'].includes(type) ? (REFERENCE.exec(text.trim()) ?? []) : [];
  return form === undefined || name === undefined ? text : { [form]: name.slice(1, -1) };
}

/**
 * Converts input to the schema's type; what cannot be converted is written to the text as it is, and the
 * check reports it.
 */
export function typed(text: string, type: string, before: unknown): unknown {
  if (text === '') return undefined;
  if (type === 'boolean') return text === 'true';
  if (type === 'integer' || type === 'number') return numberOf(text);
  if (type.startsWith('array of')) return listOf(text);
  if (typeof before === 'number' && WHOLE.test(text)) return Number(text);
  return type === 'string' && text === EMPTY ? '' : textOrReference(text, type);
}

/** The schema key of a path in the document. */
export function keyOf(path: Path, keys: readonly ConfigKey[]): ConfigKey | undefined {
  const pattern = path.reduce<string>(
    (text, segment) =>
      typeof segment === 'number' ? `${text}[]` : text === '' ? segment : `${text}.${segment}`,
    '',
  );
  return keys.find((key) => key.path === pattern);
}

export function editOf(
  path: Path,
  text: string,
  { document, keys }: { readonly document: unknown; readonly keys: readonly ConfigKey[] },
): TomlEdit {
  const before = at(document, path);
  // Of a key that no schema names, what stands there tells.
  const type = keyOf(path, keys)?.type ?? (Array.isArray(before) ? 'array of string' : 'string');
  const value = typed(text, type, before);
  // An emptied option stays; options are removed in the text.
  return value === undefined ? { path } : { path, value };
}
