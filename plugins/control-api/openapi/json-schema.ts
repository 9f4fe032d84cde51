/** Converts Joi schemas to JSON Schema (2020-12), as far as the API's routes use them. */
import type { Joi } from 'mountkeeper';

type Schema = Joi.Schema;
export type JsonSchema = Record<string, unknown>;

/** The parts of `schema.describe()` that are read here. */
interface Described {
  readonly type?: string;
  readonly flags?: {
    readonly description?: string;
    readonly default?: unknown;
    readonly presence?: string;
    readonly only?: boolean;
    readonly unknown?: boolean;
  };
  readonly allow?: readonly unknown[];
  readonly rules?: readonly {
    readonly name: string;
    readonly args?: { readonly limit?: unknown; readonly regex?: string };
  }[];
  readonly keys?: Record<string, Described>;
  readonly patterns?: readonly { readonly rule?: Described }[];
  readonly items?: readonly Described[];
  readonly matches?: readonly { readonly schema?: Described }[];
}

export function jsonSchema(schema: Schema): JsonSchema {
  return mapped(schema.describe() as Described);
}

const TYPES: Readonly<Record<string, (described: Described) => JsonSchema>> = {
  string: ({ rules = [] }) => ({
    type: 'string',
    ...textFormat(rules),
    ...limits(rules, 'minLength', 'maxLength'),
  }),
  number: ({ rules = [] }) => ({
    type: rules.some(({ name }) => name === 'integer') ? 'integer' : 'number',
    ...limits(rules, 'minimum', 'maximum'),
  }),
  boolean: () => ({ type: 'boolean' }),
  array: ({ items = [], rules = [] }) => ({
    type: 'array',
    items: items.length === 0 ? {} : anyOf(items.map(mapped)),
    ...limits(rules, 'minItems', 'maxItems'),
  }),
  object: objectSchema,
  alternatives: ({ matches = [] }) =>
    anyOf(matches.map((match) => (match.schema ? mapped(match.schema) : {}))),
  any: () => ({}),
};

function mapped(described: Described): JsonSchema {
  const { description, default: byDefault } = described.flags ?? {};
  return {
    ...valued(described),
    ...(description !== undefined && { description }),
    ...(isPlain(byDefault) && { default: byDefault }),
  };
}

/** The type and further allowed values. A text that may be empty is still a text. */
function valued(described: Described): JsonSchema {
  const { flags, allow = [] } = described;
  if (flags?.only === true) return { enum: [...allow] };
  const body = typed(described);
  const beside = allow
    .filter((value) => value !== '')
    .map((value) => (value === null ? { type: 'null' } : { const: value }));
  return anyOf([body, ...beside]);
}

function typed(described: Described): JsonSchema {
  return TYPES[described.type ?? 'any']?.(described) ?? {};
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

function anyOf(schemas: readonly JsonSchema[]): JsonSchema {
  return schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas };
}

function objectSchema({ keys = {}, patterns = [], flags = {} }: Described): JsonSchema {
  const entries = Object.entries(keys);
  const required = entries.filter(([, { flags: own }]) => own?.presence === 'required').map(([key]) => key);
  const rule = patterns[0]?.rule;
  const isClosed = entries.length > 0 && flags.unknown !== true;
  return {
    type: 'object',
    ...(entries.length > 0 && {
      properties: Object.fromEntries(entries.map(([key, value]) => [key, mapped(value)])),
    }),
    ...(required.length > 0 && { required }),
    ...others(rule, isClosed),
  };
}

function others(rule: Described | undefined, isClosed: boolean): JsonSchema {
  if (rule) return { additionalProperties: mapped(rule) };
  return isClosed ? { additionalProperties: false } : {};
}

type Rules = NonNullable<Described['rules']>;

function limits(rules: Rules, min: string, max: string): JsonSchema {
  const of = (name: string): unknown => rules.find((rule) => rule.name === name)?.args?.limit;
  const [least, most] = [of('min'), of('max')];
  return {
    ...(typeof least === 'number' && { [min]: least }),
    ...(typeof most === 'number' && { [max]: most }),
  };
}

function textFormat(rules: Rules): JsonSchema {
  if (rules.some(({ name }) => name === 'isoDate')) return { format: 'date-time' };
  return rules.some(({ name }) => name === 'uri') ? { format: 'uri' } : {};
}
