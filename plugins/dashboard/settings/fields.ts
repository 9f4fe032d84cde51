/**
 * The settings form: the keys of the schema with the values of the text. The text is authoritative; a field
 * changes its key in the text.
 */
import { html, joinPath, MASK } from 'mountkeeper';
import type { ConfigKey, ConnectionOption, Content, View } from 'mountkeeper';
import { isAddable } from './additions.ts';
import { offersOf } from './offers.ts';
import type { Names, Offers } from './offers.ts';
import { arraysOf, isOptions, NAMED, OPTIONS, sectionsOf } from './sections.ts';
import type { Section } from './sections.ts';
import { at, isList, isMask, isTypeable, OPTION, shownValue, typeable, wordsOf } from './typed.ts';
import type { Path } from './typed.ts';

type Table = Readonly<Record<string, unknown>>;

/** What only a command can make, which knows the secret: here stands its hash alone. */
const MADE_BY: Readonly<Record<string, { readonly key: string; readonly command: string }>> = {
  'web.users': { key: 'made-hash', command: 'mountkeeper hash-password' },
  'web.tokens': { key: 'made-token', command: 'mountkeeper token new NAME --role viewer' },
};

/** What is known beside the schema. */
export interface Knowledge {
  readonly names?: Names;
  /** Options that connections of a type may have. */
  readonly options?: (type: string) => readonly ConnectionOption[];
  /** Options of connections that the daemon masks. */
  readonly isSecret?: (path: Path) => boolean;
}

export function fieldsPanel(
  document: Table,
  keys: readonly ConfigKey[],
  view: View,
  knowledge: Knowledge = {},
): Content {
  const sections = sectionsOf(document, keys);
  const plain = sections.filter(({ array }) => array === undefined);
  const drawing = { document, view, knowledge };
  return html`<div
    class="fields"
    hx-include="#settings-text"
    hx-target="#settings-verdict"
    hx-swap="innerHTML"
    hx-sync=".settings:queue all"
  >
    ${arraysOf(keys).map((array) =>
      arrayPanel(
        array,
        sections.filter((one) => one.array === array),
        drawing,
      ),
    )}
    ${plain.map(
      (section) =>
        html`<details class="card" data-section=${section.path.join('.')} data-holds=${joinPath(section.path)}>
          <summary><strong>${section.path.join('.')}</strong></summary>
          ${ownProblems()}
          ${
            NAMED.has(section.path.join('.')) ? namedLists(section, drawing) : sectionFields(section, drawing)
          }
        </details>`,
    )}
  </div>`;
}

interface Drawing {
  readonly document: Table;
  readonly view: View;
  readonly knowledge: Knowledge;
}

/** Of what has no field of its own; shown by the page's script, which opens what they are in. */
function ownProblems(): Content {
  return html`<div class="problems" hidden></div>`;
}

function arrayPanel(array: string, sections: readonly Section[], drawing: Drawing): Content {
  const { document, view } = drawing;
  return html`<details class="card" data-section=${array} data-holds=${array} open=${array === 'shares'}>
    <summary><strong>${array}</strong> <small>${view.number(sections.length)}</small></summary>
    ${ownProblems()}
    ${sections.map(
      (section) =>
        html`<details class="item" data-holds=${joinPath(section.path)} open=${sections.length === 1}>
          <summary><bdi>${titleOf(at(document, section.path) as Table)}</bdi></summary>
          ${ownProblems()}
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
function namedLists({ path, keys }: Section, drawing: Drawing): Content {
  const { document, view } = drawing;
  return html`${keys.map(({ key }) => html`<p class="help">${described(key, view)}</p>`)}
    ${namesIn(at(document, path)).map(
      (name) =>
        html`<div class="item" key=${name}>
          ${keys.map(({ key }) => freeField(key, [...path, name], 'array of string', drawing))}
          <div class="actions">${removeButton([...path, name], view)}</div>
        </div>`,
    )}
    ${addByName(path, [], view)}`;
}

function namesIn(table: unknown): readonly string[] {
  return typeof table === 'object' && table !== null && !Array.isArray(table) ? Object.keys(table) : [];
}

function removeButton(path: Path, view: View, label = 'remove'): Content {
  return html`<button type="button" class="quiet" ...${posting(view, 'remove', path)}>
    ${view.t(label)}<span class="unseen"> <bdi>${String(path.at(-1))}</bdi></span>
  </button>`;
}

/** `known`: names that are proposed. */
function addByName(path: Path, known: readonly string[], view: View): Content {
  const id = idOf('name', path);
  const list = known.length > 0 ? `${id}-known` : undefined;
  return html`<div class="actions">
    <label for=${id}>${view.t(isOptions(path) ? 'add-option' : 'add-name')}</label>
    <input id=${id} name="entry" list=${list} autocomplete="off" spellcheck="false" />
    ${list && html`<datalist id=${list}>${known.map((one) => html`<option value=${one} />`)}</datalist>`}
    <button type="button" hx-include=${`#settings-text, [id="${id}"]`} ...${posting(view, 'add', path)}>
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
  const { document, view, knowledge } = drawing;
  return keys.map(({ key, inside }) => {
    const own = [...path, ...inside];
    if (key.path === OPTIONS) return connectionOptions(key, own, drawing);
    const offers = offersOf(key, document, knowledge.names ?? (() => []));
    return field(
      { key, path: own, label: inside.join('.') || String(path.at(-1)), value: at(document, own), offers },
      view,
    );
  });
}

/** Those that are there, and a field for the name of another one. */
function connectionOptions(key: ConfigKey, path: Path, drawing: Drawing): Content {
  const { document, view, knowledge } = drawing;
  const names = namesIn(at(document, path));
  const known = knownOptions(document, path, knowledge);
  const others = known.map(({ name }) => name).filter((name) => !names.includes(name));
  return html`${names.map((name) => {
    const own = [...path, name];
    const type = known.find((one) => one.name === name)?.type ?? typeof at(document, own);
    return freeField(key, own, type, drawing);
  })}
  ${addByName(path, others, view)}`;
}

export function knownOptions(
  document: unknown,
  options: Path,
  { options: optionsOf }: Knowledge,
): readonly ConnectionOption[] {
  const type = at(document, [...options.slice(0, -1), 'type']);
  return typeof type === 'string' ? (optionsOf?.(type) ?? []) : [];
}

/** Of a key that no schema names. */
function freeField(
  key: ConfigKey,
  path: Path,
  type: string,
  { document, view, knowledge }: Drawing,
): Content {
  const value = at(document, path);
  const isSecret = knowledge.isSecret?.(path) === true;
  const traits = { description: '', default: undefined, translations: {}, secret: isSecret };
  // `lines`: a field of one line would join them.
  const drawn = type === 'boolean' || type === 'lines' || isList(type) ? type : OPTION;
  return field({ key: { ...key, ...traits, type: drawn }, path, label: String(path.at(-1)), value }, view);
}

interface Field {
  readonly key: ConfigKey;
  readonly path: Path;
  readonly label: string;
  readonly value: unknown;
  readonly offers?: Offers | undefined;
}

/** The same for the same path alone. */
export function idOf(prefix: string, path: Path): string {
  const parts = path.map((one) => String(one).replaceAll(/[^\w-]/g, (sign) => `~${sign.codePointAt(0)}~`));
  return `${prefix}-${parts.join('.')}`;
}

function field(shown: Field, view: View): Content {
  const { key, path, label, value, offers } = shown;
  const id = idOf('field', path);
  const byDefault = key.default === undefined ? undefined : shownValue(key.default);
  const isOfText = !isDrawn(shown);
  return html`<div class="field" data-field=${joinPath(path)}>
    <label for=${id}
      ><code>${label}</code>
      <span
        class="badge"
        data-tone=${key.tier === 'live' ? 'good' : 'off'}
        title=${view.plain(`tier-${key.tier}-help`)}
        >${view.t(`tier-${key.tier}`)}</span
      ></label
    >
    ${input(shown, { id, byDefault, view, isOfText })}
    <p class="help" id=${`${id}-help`}>
      ${described(key, view)}${unitOf(key, view)}${possible(
        key,
        offers,
        view,
      )}${isHidden(shown) && isMask(value) ? html`${view.t('mask-kept')} ` : null}${
        isOfText ? html`${view.t('by-text-only')} ` : null
      }${key.fileOnly === false ? null : view.t('by-file-only')}
    </p>
    ${takingAway(shown, isOfText, view)}
    <div class="problems" id=${`${id}-problem`} hidden></div>
  </div>`;
}

/** What an empty field does not take away, and what can only be taken back. */
function takingAway({ key, path, value }: Field, isOfText: boolean, view: View): Content {
  if (value === undefined || value === '' || isOfText) return null;
  if (key.fileOnly === 'but-default')
    return html`<div class="actions">${removeButton(path, view, 'to-default')}</div>`;
  const isTakenByButton = key.fileOnly === false && (key.secret || isMask(value));
  return isTakenByButton ? html`<div class="actions">${removeButton(path, view, 'clear')}</div>` : null;
}

/** What it cannot show so that it comes back the same stands in the text alone. */
function isDrawn(shown: Field): boolean {
  const { key, value } = shown;
  return (
    key.type !== 'lines' &&
    isTypeable(key.type, value) &&
    !(isHidden(shown) && typeof value === 'string' && value.includes('\n'))
  );
}

function isHidden({ key, value }: Pick<Field, 'key' | 'value'>): boolean {
  return key.secret || isMask(value);
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
  return isList(type) ? html`${view.t('unit-list')} ` : null;
}

/** A list is typed: what it may hold is named beside it. */
function possible({ type }: ConfigKey, offers: Offers | undefined, view: View): Content {
  if (!offers || !isList(type)) return null;
  const { values } = offers;
  return html`${view.t('offered', { values: html`<code>${values.join(', ')}</code>` })} `;
}

interface Input {
  readonly id: string;
  readonly byDefault: string | undefined;
  readonly view: View;
  /** It can be changed in the text alone. */
  readonly isOfText: boolean;
}

/** All values that a key takes; undefined where it takes others, too. */
function choicesOf({ key, value, offers }: Field): readonly string[] | undefined {
  const words = wordsOf(key.type);
  if (words) return words;
  if (offers?.isWhole !== true || isList(key.type)) return undefined;
  // What stands there may be of a plugin that is off, or a name that is not there yet.
  const own = typeof value === 'string' ? typeable(value, key) : '';
  return [...new Set([...offers.values, ...(own === '' ? [] : [own])])];
}

function input(shown: Field, drawn: Input): Content {
  const { key, path, value } = shown;
  const { id, view, isOfText } = drawn;
  const attributes = {
    id,
    name: 'value',
    disabled: key.fileOnly !== false || isOfText,
    'aria-describedby': `${id}-help ${id}-problem`,
    'hx-trigger': 'change',
    ...posting(view, 'set', path),
  };
  const choices = isOfText ? undefined : choicesOf(shown);
  if (choices) return html`<select ...${attributes}>${options(choices, shown, drawn)}</select>`;
  if (typeof value === 'string' && value.includes('\n') && !isHidden(shown)) {
    const rows = String(Math.min(12, value.split('\n').length + 1));
    return html`<textarea ...${attributes} rows=${rows} spellcheck="false">${`\n${value}`}</textarea>`;
  }
  return textInput(attributes, shown, drawn);
}

/** What stands there and is none of them is shown as it is written: choosing the right one is a change then. */
function options(choices: readonly string[], shown: Field, { byDefault, view }: Input): Content {
  const { key, value } = shown;
  const isRight = typeof value === (key.type === 'boolean' ? 'boolean' : 'string');
  const chosen = value === undefined || !isRight ? undefined : typeable(value, key);
  const isKnown = value === undefined || (chosen !== undefined && choices.includes(chosen));
  return html`<option value="" selected=${value === undefined}>
      ${byDefault === undefined ? '–' : view.t('default-is', { value: word(byDefault, view) })}
    </option>
    ${isKnown ? null : html`<option disabled selected value="?">${JSON.stringify(value)}</option>`}
    ${choices.map((one) => html`<option value=${one} selected=${chosen === one}>${word(one, view)}</option>`)}`;
}

function textInput(
  attributes: Readonly<Record<string, unknown>>,
  shown: Field,
  { id, byDefault }: Input,
): Content {
  const { key, value, offers } = shown;
  const isSecret = isHidden(shown);
  const proposed = isList(key.type) ? undefined : offers?.values;
  const list = `${id}-offers`;
  // Nothing can be typed behind a mask that is not there.
  const text = value === undefined || isMask(value) ? '' : typeable(value, key);
  return html`<input
    ...${attributes}
    list=${proposed && list}
    type=${isSecret ? 'password' : 'text'}
    autocomplete=${isSecret ? 'new-password' : 'off'}
    value=${text}
    placeholder=${isMask(value) ? MASK : byDefault}
    spellcheck="false"
  />${proposed && html`<datalist id=${list}>${proposed.map((one) => html`<option value=${one} />`)}</datalist>`}`;
}

function word(value: string, view: View): Content {
  return value === 'true' || value === 'false' ? view.t(value === 'true' ? 'yes' : 'no') : value;
}
