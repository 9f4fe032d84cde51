/**
 * The key tree: every key of the assembled configuration with its description, default, tier, secret mark and owner.
 * Read from Joi's own description of the schemas; differences, rendering, masking and the reference pages all walk it.
 */
import type { ChangeTier, ConfigKey } from '../services.ts';

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
  readonly owner: string;
  /** A table that also keeps keys nobody declared. */
  readonly open: boolean;
  readonly children: ReadonlyMap<string, KeyNode>;
}

export interface Origin {
  readonly path: string;
  readonly owner: string;
  readonly tier: ChangeTier;
}

/** What `schema.describe()` of Joi gives, as far as it is read here. */
interface Described {
  readonly type?: string;
  readonly rules?: readonly { readonly name: string }[];
  readonly flags?: { readonly description?: string; readonly default?: unknown; readonly presence?: string; readonly unknown?: boolean; readonly only?: boolean };
  readonly metas?: readonly { readonly tier?: ChangeTier; readonly secret?: boolean; readonly type?: string }[];
  readonly keys?: Record<string, Described>;
  readonly items?: readonly Described[];
  readonly patterns?: readonly unknown[];
  readonly allow?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly matches?: readonly { readonly schema?: Described }[];
}

/** The node of one described schema and all below it; `origin.tier` holds where no nearer tier is given. */
export function buildNode(description: object, origin: Origin): KeyNode {
  const described = description as Described;
  const meta = Object.assign({}, ...(described.metas ?? [])) as { tier?: ChangeTier; secret?: boolean };
  const item = described.items?.length === 1 ? described.items[0] : undefined;
  const kind = kindOf(described, item);
  const body = kind === 'tables' && item !== undefined ? item : described;
  const tier = meta.tier ?? origin.tier;
  const inside: Origin = { path: kind === 'tables' ? `${origin.path}[]` : origin.path, owner: origin.owner, tier };
  return {
    path: origin.path,
    kind,
    type: typeName(described),
    description: described.flags?.description ?? '',
    default: defaultOf(described.flags?.default),
    example: described.examples?.[0],
    required: described.flags?.presence === 'required',
    tier,
    secret: meta.secret === true,
    owner: origin.owner,
    open: body.type === 'object' && (body.keys === undefined || body.flags?.unknown === true || (body.patterns?.length ?? 0) > 0),
    children: kind === 'value' ? new Map() : childrenOf(body, inside),
  };
}

function childrenOf(described: Described, inside: Origin): Map<string, KeyNode> {
  const own = Object.assign({}, ...(described.metas ?? [])) as { tier?: ChangeTier };
  const tier = own.tier ?? inside.tier;
  return new Map(Object.entries(described.keys ?? {}).map(([key, child]) => {
    const path = inside.path === '' ? key : `${inside.path}.${key}`;
    return [key, buildNode(child, { path, owner: inside.owner, tier })];
  }));
}

function kindOf(described: Described, item: Described | undefined): KeyKind {
  if (described.type === 'object') return 'table';
  return described.type === 'array' && item?.type === 'object' && item.keys !== undefined ? 'tables' : 'value';
}

/** Joi describes a default that is computed as a function or a mark; such a default has no text. */
function defaultOf(value: unknown): unknown {
  if (typeof value === 'function') return undefined;
  const isMark = typeof value === 'object' && value !== null && ('special' in value || 'function' in value);
  return isMark ? undefined : value;
}

function typeName(described: Described): string {
  const named = described.metas?.findLast((meta) => meta.type !== undefined)?.type;
  if (named !== undefined) return named;
  if (described.flags?.only === true) return (described.allow ?? []).map((value) => JSON.stringify(value)).join(' | ');
  if (described.type === 'array') return arrayName(described.items ?? []);
  if (described.type === 'object') return 'table';
  if (described.type === 'alternatives') {
    return [...new Set((described.matches ?? []).map((match) => (match.schema ? typeName(match.schema) : 'any')))].join(' | ');
  }
  const isInteger = described.type === 'number' && described.rules?.some((rule) => rule.name === 'integer' || rule.name === 'port');
  return isInteger === true ? 'integer' : (described.type ?? 'any');
}

function arrayName(items: readonly Described[]): string {
  return items[0] === undefined ? 'array' : `array of ${items[0].type === 'object' ? 'tables' : items.map(typeName).join(' | ')}`;
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
export function listKeys(node: KeyNode): ConfigKey[] {
  const below = [...node.children.values()].flatMap((child) => listKeys(child));
  if (node.kind !== 'value' && (node.children.size > 0 || node.path === '')) return below;
  const { path, type, description, tier, secret, owner } = node;
  return [{ path, type, description, default: node.default, tier, secret, owner }, ...below];
}
