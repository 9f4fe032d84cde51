/** What is typed into a field, as the schema wants it, and the way back. */
import { MASK } from 'mountkeeper';

export type Path = readonly (string | number)[];
type Table = Readonly<Record<string, unknown>>;

/** An empty text, as it is typed where an empty field means the default. */
export const EMPTY = '""';
/** Of an option that nothing is known of: what stands there tells. */
export const OPTION = 'option';

const CHOICE = /^"[^"]*"(?: \| "[^"]*")*$/;
const NUMBER = /^-?\d{1,15}(?:\.\d{1,15})?$/;
const LIST = 'array of ';
/** Types of which no value is typed as one text; a schema may have words of its own for those of texts. */
const NOT_TYPED: ReadonlySet<string> = new Set(
  'any array table tables object alternatives date binary function link symbol true false null'.split(' '),
);

export function at(document: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, segment) => (value as Record<string | number, unknown> | undefined)?.[segment],
    document,
  );
}

export function isMask(value: unknown): boolean {
  return value === MASK;
}

/** All words that it takes; undefined for another type. */
export function wordsOf(type: string): readonly string[] | undefined {
  if (type === 'boolean') return ['true', 'false'];
  return CHOICE.test(type) ? type.split(' | ').map((one) => one.slice(1, -1)) : undefined;
}

export function isList(type: string): boolean {
  return type.startsWith(LIST);
}

/** Whether a value of this type, and the one that stands there, can be typed into a field. */
export function isTypeable(type: string, value: unknown): boolean {
  if (isList(type))
    return isOneText(type.slice(LIST.length)) && (!Array.isArray(value) || value.every(isPlain));
  return (
    isOneText(type) &&
    (isPlain(value) || (Array.isArray(value) && value.every(isPlain)) || isReference(value))
  );
}

function isOneText(type: string): boolean {
  return CHOICE.test(type) || (/^[a-z_][\w -]*$/i.test(type) && !isList(type) && !NOT_TYPED.has(type));
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' || value instanceof Date;
}

const REFERENCE = /^\{\s*(env|file|credential)\s*=\s*("[^"]*"|'[^']*')\s*\}$/;

function isReference(value: unknown): value is Table {
  const [first, ...others] = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const isOne = first !== undefined && others.length === 0;
  return isOne && ['env', 'file', 'credential'].includes(first[0]) && typeof first[1] === 'string';
}

/** A secret, or where it is kept, as the help of its field writes that. */
function textOrReference(text: string): string | Table {
  const [, form, name] = REFERENCE.exec(text.trim()) ?? [];
  return form === undefined || name === undefined ? text : { [form]: name.slice(1, -1) };
}

/**
 * Converts input to the schema's type; what cannot be converted is written to the text as it is, and the
 * check reports it.
 */
export function typed(text: string, type: string, before: unknown): unknown {
  if (text === '') return undefined;
  if (isList(type)) return listOf(text, type.slice(LIST.length));
  if (type === OPTION) return optionOf(text, before);
  return scalarOf(text, type);
}

function scalarOf(text: string, type: string): unknown {
  if (type === 'boolean') return isWord(text) ? text === 'true' : text;
  if (type === 'integer' || type === 'number') return numberOf(text);
  if (type === 'string' && text === EMPTY) return '';
  return type === 'string' || type === 'secret' ? textOrReference(text) : text;
}

/** A number stays one, and so does a yes or no. */
function optionOf(text: string, before: unknown): unknown {
  if (typeof before === 'number' && NUMBER.test(text)) return Number(text);
  return typeof before === 'boolean' && isWord(text) ? text === 'true' : textOrReference(text);
}

function isWord(text: string): boolean {
  return text === 'true' || text === 'false';
}

function numberOf(text: string): number | string {
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

function listOf(text: string, of: string): unknown {
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
    .filter((one) => one !== '')
    .map((one) => (['integer', 'number', 'boolean'].includes(of) ? scalarOf(one, of) : one));
}

/** An empty text that stands in place of another default is written as TOML does, to be told from none. */
export function typeable(
  value: unknown,
  { type, default: byDefault }: { type: string; default: unknown },
): string {
  return value === '' && typeof byDefault === 'string' && byDefault !== '' ? EMPTY : shownValue(value, type);
}

export function shownValue(value: unknown, type = `${LIST}string`): string {
  if (Array.isArray(value)) return shownList(value, type);
  if (value instanceof Date) return value.toISOString();
  if (!isReference(value))
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
  const [[form, name] = ['', '']] = Object.entries(value);
  return `{ ${form} = ${JSON.stringify(name)} }`;
}

/** With commas between them; as TOML writes it where that would be read as another list. */
function shownList(value: readonly unknown[], type: string): string {
  const text = value.map(String).join(', ');
  const isSame = value.length > 0 && JSON.stringify(typed(text, type, undefined)) === JSON.stringify(value);
  return isSame ? text : JSON.stringify(value);
}
