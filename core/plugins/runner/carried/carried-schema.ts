/**
 * Schemas that cross from a runner into the daemon: as Joi's own description, of which the same is built
 * again. Functions cannot cross; durations, sizes and rates of the SDK, which have one, cross by their name.
 */
import Joi from 'joi';
import type { Description, ObjectSchema, Root, Schema } from 'joi';
import { duration, rate, size } from '../../../sdk/config-types.ts';
import type { Limits } from '../../../sdk/config-types.ts';
import { isTable } from '../../../sdk/toml/document.ts';
import { NotCarried } from '../protocol.ts';
import { timePatterns } from './timed-patterns.ts';

const AMOUNTS = { duration, size, rate } as const;
type Amount = keyof typeof AMOUNTS;

interface Node {
  readonly type?: unknown;
  readonly rules?: readonly { readonly name?: unknown }[];
  readonly metas?: readonly Meta[];
}
interface Meta {
  readonly type?: unknown;
  readonly limits?: Limits;
}

/** In the runner: throws a `NotCarried`. */
export function carriedSchema(what: string, schema: Schema): object {
  const carried = withoutFunctions(what, named(schema.describe()));
  try {
    const built = JSON.stringify(named(builtSchema(carried).describe()));
    if (built === JSON.stringify(carried)) return carried;
  } catch (error) {
    throw new NotCarried(what, `since it cannot be built again: ${(error as Error).message}`);
  }
  throw new NotCarried(what, 'since it is another one after it was built again');
}

/**
 * In the daemon: throws what Joi throws for what is no description, and where a reference leads to anything but keys
 * of the schema: the plugin's section stands in the whole document, with the secrets of all others, and the core's own
 * keys stand beside those of the plugin. Throws also for what could take the daemon's time or memory without an end,
 * and for what the schema says beyond its keys: merged with the core's, it would change those.
 */
export function builtSchema<S extends Schema = ObjectSchema>(carried: object): S {
  const built = joi.build(carried as Description) as S;
  // Joi notes on a schema which references lead above it, but not those to the root, nor those in messages.
  const { refs } = (built as unknown as { _refs: { refs: readonly unknown[] } })._refs;
  if (refs.length > 0 || leadsOut(carried) || leadsBeside(carried, tableOf(carried)))
    throw new Error('a reference in it leads out of its own section');
  const odd = growing(carried) ?? beyondKeys(carried);
  if (odd !== undefined) throw new Error(odd);
  timePatterns(built);
  return built;
}

/** Of a description: what holds schemas of values that are one level further down. */
const DEEPER = new Set(['keys', 'items', 'ordered']);

interface Reference {
  readonly path: readonly unknown[];
  readonly type?: unknown;
  readonly ancestor?: unknown;
}

function tableOf(carried: object): Table {
  const { keys = {} } = carried as { readonly keys?: object };
  return { above: 0, own: new Set(Object.keys(keys)) };
}

interface Table {
  /** Levels between here and the schema's table; what is not known to be deeper counts as here. */
  readonly above: number;
  readonly own: ReadonlySet<unknown>;
}

/**
 * Whether a reference leads above the schema's table, or to what stands in it and is no key of the schema's own. Joi
 * itself notes none in `then`, in `empty` and in the names of a pattern.
 */
function leadsBeside(value: unknown, table: Table): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { ref } = value as { readonly ref?: unknown };
  if (isTable(ref) && Array.isArray(ref['path']) && isForeign(ref as unknown as Reference, table))
    return true;
  const below = { ...table, above: table.above + 1 };
  return Object.entries(value).some(([key, part]) => {
    if (isForPeople(key, part)) return false;
    return DEEPER.has(key)
      ? Object.values(part as object).some((one) => leadsBeside(one, below))
      : leadsBeside(part, table);
  });
}

function isForeign({ path, type = 'value', ancestor = 1 }: Reference, { above, own }: Table): boolean {
  if (type !== 'value') return false;
  if (typeof ancestor !== 'number' || ancestor > above) return true;
  return ancestor === above && !own.has(path[0]);
}

/** What a table may say beside its keys, each harmless to the keys of others in it. */
const OF_TABLE = new Set(['type', 'keys', 'flags', 'metas', 'notes', 'tags', 'examples']);
const FLAGS_OF_TABLE = new Set(['description', 'unknown', 'default']);

/** A rule about the table as a whole (`when`, `rename`, `max`, `and`, …), as a sentence. */
function beyondKeys(carried: object): string | undefined {
  const { flags = {} } = carried as { readonly flags?: object };
  const odd =
    Object.keys(carried).find((one) => !OF_TABLE.has(one)) ??
    Object.keys(flags).find((one) => !FLAGS_OF_TABLE.has(one));
  return odd && `"${odd}" is said of the table as a whole, and only its keys can have rules`;
}

/** What a few lines of a schema make out of little, and the daemon does nothing else meanwhile; as a sentence. */
function growing(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { type, template } = value as { readonly type?: unknown; readonly template?: unknown };
  // One that is tried four hundred times at each of eight levels never comes to an end.
  if (type === 'link') return 'a link in it leads into the schema itself';
  // Six defaults, each twenty times the one before, are 300 MB of text. Those of messages are texts here.
  if (typeof template === 'string') return 'a template in it makes a value';
  for (const [key, part] of Object.entries(value)) {
    const odd = isForPeople(key, part) ? undefined : growing(key === 'rules' ? withoutMessages(part) : part);
    if (odd !== undefined) return odd;
  }
  return undefined;
}

/** The text of an error that a rule gives makes no value. A key of the plugin's own may be called "rules", too. */
function withoutMessages(rules: unknown): unknown {
  if (!Array.isArray(rules)) return rules;
  return rules.map((rule: unknown) => (isTable(rule) ? { ...rule, message: undefined } : rule));
}

/** Texts for people, which Joi takes nothing from. */
const WORDS = new Set(['description', 'examples', 'metas', 'notes', 'tags', 'unit']);

function leadsOut(value: unknown): boolean {
  if (typeof value === 'string')
    return expressionsIn(value).some((one) => one.includes('[/') || one.includes('...'));
  if (typeof value !== 'object' || value === null) return false;
  if ((value as { ancestor?: unknown }).ancestor === 'root') return true;
  return Object.entries(value).some(([key, part]) => !isForPeople(key, part) && leadsOut(part));
}

/** A key of the plugin's own may be called so, too, but that is a schema. */
function isForPeople(key: string, part: unknown): boolean {
  return WORDS.has(key) && (typeof part === 'string' || Array.isArray(part));
}

/** Of a template: to the root of a document leads `[/`, to a table above `...`. */
function expressionsIn(template: string): readonly string[] {
  return template
    .split('{')
    .slice(1)
    .map((from) => from.split('}', 1)[0] ?? '');
}

/** Joi's description, with the SDK's amounts by their names, and marks as Joi takes them back. */
function named(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(named);
  if (!isTable(value)) return value;
  const { metas = [], rules = [] } = value as Node;
  const isNode = typeof value['type'] === 'string';
  const amount = isNode ? amountIn(metas) : undefined;
  const kept = amount === undefined ? rules : rules.filter(({ name }) => name !== 'custom');
  const parts = Object.entries(value).map(([key, part]): [string, unknown] => {
    if (key === 'type' && amount !== undefined) return [key, amount];
    if (key === 'metas' && isNode) return [key, metas.map((meta) => ({ value: meta }))];
    return [key, named(key === 'rules' && isNode ? kept : part)];
  });
  // A key of the plugin's own may be called "rules", too.
  const isEmpty = ([key, part]: readonly [string, unknown]): boolean =>
    isNode && key === 'rules' && (part as unknown[]).length === 0;
  return Object.fromEntries(parts.filter((part) => !isEmpty(part)));
}

function amountIn(metas: readonly Meta[]): Amount | undefined {
  const type = metas.find((meta) => typeof meta.type === 'string')?.type;
  return typeof type === 'string' && Object.hasOwn(AMOUNTS, type) ? (type as Amount) : undefined;
}

/** As JSON. */
function withoutFunctions(what: string, description: unknown): object {
  const own = functionIn(description, '');
  if (own !== undefined)
    throw new NotCarried(`${what}${own}`, 'since a function of its own (custom, default, external) is in it');
  return JSON.parse(JSON.stringify(description)) as object;
}

/** Where a function is. Joi names those of `.custom()` and `.external()`, and leaves them out. */
function functionIn(value: unknown, at: string): string | undefined {
  if (typeof value === 'function') return at;
  if (typeof value !== 'object' || value === null) return undefined;
  const isCustom = at.endsWith(']') && (value as { name?: unknown }).name === 'custom';
  if (Object.hasOwn(value, 'externals') || isCustom) return at.replace(/\[\d+\]$/, '');
  for (const [key, item] of Object.entries(value)) {
    const found = functionIn(item, placeOf(at, key, Array.isArray(value)));
    if (found !== undefined) return found;
  }
  return undefined;
}

function placeOf(at: string, key: string, isList: boolean): string {
  if (isList) return `${at}[${key}]`;
  return key === 'keys' || key === 'rules' ? at : `${at}.${key}`;
}

/** Joi with the SDK's amounts as types of its own: each asks the SDK's schema. */
const joi = Joi.extend(
  ...Object.entries(AMOUNTS).map(([type, make]) => (base: Root) => ({
    type,
    base: base.string(),
    validate(value: unknown, helpers: Joi.CustomHelpers) {
      const { metas = [] } = (helpers.schema as unknown as { $_terms: { metas?: Meta[] } }).$_terms;
      const limits = metas.find((meta) => meta.type === type)?.limits ?? {};
      const label = { errors: { wrap: { label: false as const } } };
      const { error } = make(limits).label('\0').validate(value, label);
      if (!error) return undefined;
      const reason = error.message.replace(/^\0:? /, '');
      return { value, errors: helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason }) };
    },
  })),
) as Root;
