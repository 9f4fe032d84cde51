/**
 * Joi building blocks for configuration keys: durations, sizes, rates, paths and secrets, all kept as the
 * text of the file.
 */
import Joi from 'joi';
import type { AlternativesSchema, CustomHelpers, ErrorReport, ObjectSchema, StringSchema } from 'joi';
import { durationMs, rateBytes, sizeBytes } from './units.ts';

/** What stands in place of a secret wherever the configuration is shown. */
export const MASK = '********';

/** A refusal of what came over HTTP, as `what` says, with where it may be said instead. */
export function onlyInFile(what: string): string {
  return `${what}; it may stand in the configuration file, written by somebody with a shell`;
}

/** Both ends count as inside; written in the unit's own text, such as `"200ms"`. */
export interface Limits {
  readonly min?: string;
  readonly max?: string;
}

function refuse(helpers: CustomHelpers, reason: string): ErrorReport {
  // The reason is passed as a local, so that braces in the user's text are not taken for a template.
  return helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason });
}

function text(type: string, parse: (value: string) => number, limits: Limits): StringSchema {
  const min = limits.min === undefined ? 0 : parse(limits.min);
  const max = limits.max === undefined ? Infinity : parse(limits.max);
  return Joi.string()
    .meta({ type })
    .custom((value: string, helpers) => {
      try {
        const amount = parse(value);
        if (amount < min) return refuse(helpers, `"${value}" is too little; the least is "${limits.min}"`);
        if (amount > max) return refuse(helpers, `"${value}" is too much; the most is "${limits.max}"`);
        return value;
      } catch (error) {
        return refuse(helpers, (error as Error).message);
      }
    });
}

/** A duration such as `"30s"`. */
export function duration(limits: Limits = {}): StringSchema {
  return text('duration', durationMs, limits);
}

/** A size such as `"128M"`. */
export function size(limits: Limits = {}): StringSchema {
  return text('size', sizeBytes, limits);
}

/** A rate such as `"10M"` (10 MiB/s); `"0"` is unlimited. */
export function rate(limits: Limits = {}): StringSchema {
  return text('rate', rateBytes, limits);
}

/** Linux takes no longer one. */
export const LONGEST_PATH = 4_096;

/**
 * A path; a relative one is taken from the configuration file's folder and is absolute in the completed
 * document.
 */
export function filePath(): StringSchema {
  return Joi.string()
    .max(LONGEST_PATH)
    .pattern(/^[^\0]*$/)
    .meta({ type: 'path' })
    .messages({ 'string.pattern.base': '{{#label}} holds a NUL character, which no path can' });
}

const SECRET_FORMS =
  'write the secret itself, { env = "NAME" }, { file = "/path" } or { credential = "name" }';

/**
 * A secret: literal, `{ env = "NAME" }`, `{ file = "/path" }` or `{ credential = "name" }`. The mask itself
 * is refused.
 */
export function secret(): AlternativesSchema {
  const literal = Joi.string()
    .allow('')
    .invalid(MASK)
    .messages({ 'any.invalid': labelled(MASK_REFUSED) });
  const refused = labelled(`is not a secret; ${SECRET_FORMS}`);
  return Joi.alternatives(literal, secretReference())
    .meta({ type: 'secret', secret: true })
    .messages({ 'alternatives.types': refused, 'alternatives.match': refused });
}

/** Exactly one of the three places where a secret may lie. */
export function secretReference(): ObjectSchema {
  return Joi.object({ env: Joi.string(), file: Joi.string(), credential: Joi.string() })
    .length(1)
    .messages({ 'object.length': labelled('refers to a secret by exactly one of env, file and credential') });
}

/** Why the mask is refused where a secret belongs; follows the key. */
export const MASK_REFUSED: string = `holds the mask "${MASK}" in place of a secret; ${SECRET_FORMS}`;

/** A message of Joi: braces in the text are no template. */
function labelled(text: string): string {
  return `{{#label}} ${text.replaceAll('{', '\\{')}`;
}
