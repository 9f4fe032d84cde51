/**
 * The key tree: every key of the assembled configuration with its description, default, tier, secret mark and
 * owner. Read from Joi's own description of the schemas; differences, rendering, masking and the reference
 * pages all walk it.
 */
import type { ChangeTier, ConfigKey, FileOnly, NamesOf } from '../../contract/config.ts';

/** `table`: known keys; `tables`: array of tables with known keys; `value`: everything else. */
export type KeyKind = 'value' | 'table' | 'tables';

export interface KeyNode {
  readonly path: string;
  readonly kind: KeyKind;
  readonly type: string;
  readonly description: string;
  readonly default: unknown;
  readonly example: unknown;
  readonly required: boolean;
  readonly tier: ChangeTier;
  readonly secret: boolean;
  readonly fileOnly: FileOnly;
  /** It says who may enter, or by what. */
  readonly entry: boolean;
  readonly words?: readonly string[];
  readonly names?: NamesOf;
  readonly owner: string;
  /** A table that also keeps keys nobody declared. */
  readonly open: boolean;
  readonly children: ReadonlyMap<string, KeyNode>;
}

/** A key as its schema declares it. */
export type DeclaredKey = Omit<ConfigKey, 'translations'>;

export interface Origin {
  readonly path: string;
  readonly owner: string;
  readonly tier: ChangeTier;
  readonly fileOnly?: FileOnly;
  readonly entry?: boolean;
}

interface Meta {
  readonly tier?: ChangeTier;
  readonly secret?: boolean;
  readonly type?: string;
  readonly fileOnly?: FileOnly;
  readonly entry?: boolean;
  readonly names?: NamesOf;
}

/** What `schema.describe()` of Joi gives, as far as it is read here. */
interface Described {
  readonly type?: string;
  readonly rules?: readonly { readonly name: string }[];
  readonly flags?: {
    readonly description?: string;
    readonly default?: unknown;
    readonly presence?: string;
    readonly unknown?: boolean;
    readonly only?: boolean;
  };
  readonly metas?: readonly Meta[];
  readonly keys?: Record<string, Described>;
  readonly items?: readonly Described[];
  readonly patterns?: readonly unknown[];
  readonly allow?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly matches?: readonly { readonly schema?: Described }[];
}

/** The node of one described schema and everything below it; `origin` holds what is inherited. */
export function buildNode(description: object, origin: Origin): KeyNode {
  const described = description as Described;
  const item = described.items?.length === 1 ? described.items[0] : undefined;
  const kind = kindOf(described, item);
  const body = kind === 'tables' && item !== undefined ? item : described;
  const here = inherit(origin, metaOf(described));
  const path = kind === 'tables' ? `${origin.path}[]` : origin.path;
  const inside = inherit({ ...here, path }, metaOf(body));
  return {
    ...documentation(described),
    ...offered(described, item),
    path: origin.path,
    kind,
    tier: here.tier,
    fileOnly: here.fileOnly ?? false,
    entry: here.entry ?? false,
    owner: origin.owner,
    open: isOpen(body),
    children: kind === 'value' ? new Map() : childrenOf(body, inside),
  };
}

/** Marks are inherited by everything below them. */
function inherit(origin: Origin, { tier, fileOnly, entry }: Meta): Origin {
  return {
    ...origin,
    tier: tier ?? origin.tier,
    fileOnly: fileOnly ?? origin.fileOnly ?? false,
    entry: entry ?? origin.entry ?? false,
  };
}

function documentation(
  described: Described,
): Pick<KeyNode, 'type' | 'description' | 'default' | 'example' | 'required' | 'secret'> {
  return {
    type: typeName(described),
    description: described.flags?.description ?? '',
    default: defaultOf(described.flags?.default),
    example: described.examples?.[0],
    required: described.flags?.presence === 'required',
    secret: metaOf(described).secret === true,
  };
}

/** What a form can offer beside the type. */
function offered(described: Described, item: Described | undefined): Pick<KeyNode, 'words' | 'names'> {
  const { allow = [], flags } = item ?? described;
  const isListed = item === undefined && flags?.only === true;
  const words = isListed ? [] : allow.filter((one) => typeof one === 'string' && one !== '');
  const names = metaOf(described).names;
  return {
    ...(words.length > 0 && { words: words as readonly string[] }),
    ...(names !== undefined && { names }),
  };
}

function metaOf(described: Described): Meta {
  return Object.assign({}, ...(described.metas ?? [])) as Meta;
}

function isOpen({ type, keys, flags, patterns }: Described): boolean {
  return type === 'object' && (keys === undefined || flags?.unknown === true || (patterns?.length ?? 0) > 0);
}

function childrenOf(described: Described, inside: Origin): Map<string, KeyNode> {
  return new Map(
    Object.entries(described.keys ?? {}).map(([key, child]) => {
      const path = inside.path === '' ? key : `${inside.path}.${key}`;
      return [key, buildNode(child, { ...inside, path })];
    }),
  );
}

function kindOf(described: Described, item: Described | undefined): KeyKind {
  if (described.type === 'object') return 'table';
  return described.type === 'array' && item?.type === 'object' && item.keys !== undefined
    ? 'tables'
    : 'value';
}

/** Joi describes a default that is computed as a function or a mark; such a default has no text. */
function defaultOf(value: unknown): unknown {
  if (typeof value === 'function') return undefined;
  const isMark = typeof value === 'object' && value !== null && ('special' in value || 'function' in value);
  return isMark ? undefined : value;
}

function typeName(described: Described): string {
  const named = metaOf(described).type;
  if (named !== undefined) return named;
  if (described.flags?.only === true) return choice(described.allow ?? []);
  const type = described.type ?? 'any';
  return NAMERS[type]?.(described) ?? type;
}

const NAMERS: Readonly<Record<string, (described: Described) => string>> = {
  array: ({ items }) => arrayName(items ?? []),
  object: () => 'table',
  alternatives: alternativeNames,
  number: ({ rules }) => numberName(rules ?? []),
};

function choice(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(' | ');
}

function numberName(rules: readonly { readonly name: string }[]): string {
  return rules.some((rule) => rule.name === 'integer' || rule.name === 'port') ? 'integer' : 'number';
}

function alternativeNames(described: Described): string {
  const names = (described.matches ?? []).map((match) =>
    match.schema === undefined ? 'any' : typeName(match.schema),
  );
  return [...new Set(names)].join(' | ');
}

function arrayName(items: readonly Described[]): string {
  return items[0] === undefined
    ? 'array'
    : `array of ${items[0].type === 'object' ? 'tables' : items.map(typeName).join(' | ')}`;
}

/** A table node with the children of both; the first non-empty description holds. */
export function mergeTables(first: KeyNode, second: KeyNode): KeyNode {
  return {
    ...first,
    description: first.description === '' ? second.description : first.description,
    open: first.open && second.open,
    children: new Map([...first.children, ...second.children]),
  };
}

/** All keys that can be set, in order: values, and tables whose keys are free. */
export function listKeys(node: KeyNode): DeclaredKey[] {
  const below = [...node.children.values()].flatMap((child) => listKeys(child));
  if (node.kind !== 'value' && (node.children.size > 0 || node.path === '')) return below;
  const { path, type, description, tier, secret, fileOnly, words, names, owner } = node;
  const offers = { ...(words && { words }), ...(names && { names }) };
  return [
    { path, type, description, default: node.default, tier, secret, fileOnly, ...offers, owner },
    ...below,
  ];
}
