/**
 * Joi building blocks for configuration keys: durations, sizes, rates, paths and secrets. All stay the text
 * of the file.
 */
import Joi from '#joi';
import type { AlternativesSchema, CustomHelpers, ErrorReport, ObjectSchema, StringSchema } from 'joi';
import { durationMs, rateBytes, sizeBytes } from './units.ts';

/** Shown instead of a secret wherever the configuration is shown. */
export const MASK = '********';

/** Message that refuses something that came over HTTP: `what`, and where it may be written instead. */
export function onlyInFile(what: string): string {
  return `${what}; it may stand in the configuration file, written by somebody with a shell`;
}

/** Inclusive bounds, in the unit's own notation, such as `"200ms"`. */
export interface Limits {
  readonly min?: string;
  readonly max?: string;
}

function refuse(helpers: CustomHelpers, reason: string): ErrorReport {
  // Passed as a local, so that braces in the user's text are not expanded as a template.
  return helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason });
}

function text(type: string, parse: (value: string) => number, limits: Limits): StringSchema {
  const min = limits.min === undefined ? 0 : parse(limits.min);
  const max = limits.max === undefined ? Infinity : parse(limits.max);
  return Joi.string()
    .meta({ type, ...(Object.keys(limits).length > 0 && { limits }) })
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

/** The longest path that Linux accepts, in bytes. */
export const LONGEST_PATH = 4_096;

/**
 * A path; a relative one is resolved against the configuration file's folder and is absolute in the
 * completed document.
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

/** A reference to one of the three places that can hold a secret. */
export function secretReference(): ObjectSchema {
  return Joi.object({ env: Joi.string(), file: Joi.string(), credential: Joi.string() })
    .length(1)
    .messages({ 'object.length': labelled('refers to a secret by exactly one of env, file and credential') });
}

/**
 * The table `tls` of a server: a certificate and its key in files, or one that the daemon makes. Over HTTP it
 * cannot be changed: it names files of this machine, and without it passwords cross the network in clear.
 */
export function tls(): ObjectSchema {
  const file = (): StringSchema => filePath().pattern(/^\//, 'absolute').messages(NOT_ABSOLUTE).optional();
  return Joi.object({
    certificate: file()
      .example('/etc/mountkeeper/tls/fullchain.pem')
      .description('File with the certificate, and the chain after it, in PEM. Read again when it changes.'),
    key: file()
      .example('/etc/mountkeeper/tls/privkey.pem')
      .description(
        'File with the key of the certificate, in PEM; not for every user of the machine to read.',
      ),
    self_made: Joi.boolean()
      .default(false)
      .description(
        'In place of the two files: a certificate that the daemon makes and signs itself, in the state folder.',
      ),
  })
    .and('certificate', 'key')
    .custom((value: { certificate?: string; self_made: boolean }, helpers) =>
      (value.certificate !== undefined) === value.self_made ? helpers.message({ custom: TWO_WAYS }) : value,
    )
    .meta({ fileOnly: true });
}

const NOT_ABSOLUTE = { 'string.pattern.name': '{{#label}} must be an absolute path' };
const TWO_WAYS = '{{#label}} needs either certificate and key, or self_made = true';

/** Why the mask is refused in place of a secret; follows the key's name in a message. */
export const MASK_REFUSED: string = `holds the mask "${MASK}" in place of a secret; ${SECRET_FORMS}`;

/** A Joi message in which braces in the text are not expanded as a template. */
function labelled(text: string): string {
  return `{{#label}} ${text.replaceAll('{', '\\{')}`;
}
