/** How the keys of the schema stand in the form: in tables, and in the items of arrays of tables. */
import type { ConfigKey, TomlEdit } from 'mountkeeper';
import { at, OPTION, typed } from './typed.ts';
import type { Path } from './typed.ts';

type Table = Readonly<Record<string, unknown>>;

/** A key with its place in the section. */
export interface Placed {
  readonly key: ConfigKey;
  readonly inside: readonly string[];
}

/** One section of the form: a table, or one item of an array of tables. */
export interface Section {
  readonly path: Path;
  /** The array's name, for an item of an array. */
  readonly array: string | undefined;
  readonly keys: readonly Placed[];
}

/** Tables of lists, each under a name that people choose. */
export const NAMED: ReadonlySet<string> = new Set(['groups']);
/** Options of a backend: no schema names them. */
export const OPTIONS = 'connections[].options';

/** Plugins are switched on a page of their own, and in the file; their log's level by command, and in the file. */
export function isSwitch(path: string): boolean {
  const [first, , key] = path.split('.');
  return (
    first === 'plugins' &&
    (key === undefined || key === 'enabled' || key === 'isolation' || key === 'log_level')
  );
}

/** Keys by section; arrays end in `[]`: `shares[]`, `web`. */
function bySection(keys: readonly ConfigKey[]): ReadonlyMap<string, readonly Placed[]> {
  const sections = new Map<string, Map<string, Placed>>();
  for (const key of keys) {
    if (isSwitch(key.path)) continue;
    const [section, placed] = placeOf(key);
    const own = sections.get(section) ?? new Map<string, Placed>();
    sections.set(section, own);
    if (!own.has(placed.key.path)) own.set(placed.key.path, placed);
  }
  return new Map([...sections].map(([name, placed]) => [name, [...placed.values()]]));
}

function placeOf(key: ConfigKey): readonly [section: string, placed: Placed] {
  const [array = '', item, ...deeper] = key.path.split('[].');
  if (item === undefined) {
    // A table of free keys, such as `groups`, is a section of its own.
    const dot = key.path.lastIndexOf('.');
    return dot < 0
      ? [key.path, { key, inside: [] }]
      : [key.path.slice(0, dot), { key, inside: [key.path.slice(dot + 1)] }];
  }
  if (deeper.length === 0) return [`${array}[]`, { key, inside: item.split('.') }];
  // Tables in an array that is in a table of an array: as a whole.
  const whole = {
    ...key,
    path: `${array}[].${item}`,
    type: 'array of tables',
    description: '',
    translations: {},
  };
  return [`${array}[]`, { key: { ...whole, default: undefined, secret: false }, inside: item.split('.') }];
}

export function sectionsOf(document: Table, keys: readonly ConfigKey[]): readonly Section[] {
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

export function arraysOf(keys: readonly ConfigKey[]): readonly string[] {
  return [...bySection(keys).keys()].filter((name) => name.endsWith('[]')).map((name) => name.slice(0, -2));
}

/** As keys of the schema are called. */
function patternOf(path: Path): string {
  return path.reduce<string>(
    (text, segment) =>
      typeof segment === 'number' ? `${text}[]` : text === '' ? segment : `${text}.${segment}`,
    '',
  );
}

/** The schema key of a path in the document. */
export function keyOf(path: Path, keys: readonly ConfigKey[]): ConfigKey | undefined {
  const pattern = patternOf(path);
  return keys.find((key) => key.path === pattern);
}

/** The options of a connection. */
export function isOptions(path: Path): boolean {
  return patternOf(path) === OPTIONS;
}

export interface Written {
  readonly document: unknown;
  readonly keys: readonly ConfigKey[];
  /** Of an option of a connection, where it is known. */
  readonly optionType?: (path: Path) => string | undefined;
}

export function editOf(path: Path, text: string, { document, keys, optionType }: Written): TomlEdit {
  const parent = path.slice(0, -1);
  const type = NAMED.has(patternOf(parent))
    ? 'array of string'
    : (keyOf(path, keys)?.type ?? (isOptions(parent) ? optionType?.(path) : undefined) ?? OPTION);
  const value = typed(text, type, at(document, path));
  return value === undefined ? { path } : { path, value };
}
