/** Joi building blocks for configuration keys: durations, sizes, rates and secrets, all kept as the text of the file. */
import Joi from 'joi';
import type { AlternativesSchema, StringSchema } from 'joi';
import { durationMs, rateBytes, sizeBytes } from './units.ts';

/** What stands in place of a secret wherever the configuration is shown. */
export const MASK = '********';

function text(type: string, parse: (value: string) => number): StringSchema {
  return Joi.string().allow('0').meta({ type }).custom((value: string, helpers) => {
    try {
      parse(value);
      return value;
    } catch (error) {
      return helpers.message({ custom: `{{#label}}: ${(error as Error).message.replaceAll('{', '(')}` });
    }
  });
}

/** A duration such as `"30s"`. */
export function duration(): StringSchema {
  return text('duration', durationMs);
}

/** A size such as `"128M"`. */
export function size(): StringSchema {
  return text('size', sizeBytes);
}

/** A rate such as `"10M"` (10 MiB/s); `"0"` is unlimited. */
export function rate(): StringSchema {
  return text('rate', rateBytes);
}

/** A secret: literal, `{ env = "NAME" }`, `{ file = "/path" }` or `{ credential = "name" }`. The mask itself is refused. */
export function secret(): AlternativesSchema {
  const literal = Joi.string().allow('').invalid(MASK).messages({
    'any.invalid': `{{#label}} holds the mask "${MASK}" in place of a secret; write the secret itself or a reference such as { env = "NAME" }`,
  });
  const reference = Joi.object({ env: Joi.string(), file: Joi.string(), credential: Joi.string() }).length(1);
  return Joi.alternatives(literal, reference).meta({ type: 'secret', secret: true });
}
