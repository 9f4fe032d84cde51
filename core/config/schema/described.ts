/**
 * `describe()` of schemas, each once and unchecked. Joi validates every description that it gives, and every part of it
 * again: that was 180 ms of processor time in each start, more than everything else that is done with schemas.
 */
import type { Schema } from 'joi';

const known = new WeakMap<Schema, object>();

/** `schema.describe()`; must not be changed. */
export function described(schema: Schema): object {
  const description = known.get(schema) ?? unchecked(schema);
  known.set(schema, description);
  return description;
}

/** Joi checks by `assert` of the Joi that made the schema; nothing else runs meanwhile. */
function unchecked(schema: Schema): object {
  const { $_root: joi } = schema as Schema & { readonly $_root: { assert: unknown } };
  const { assert } = joi;
  // A Joi that somebody has frozen takes longer.
  Reflect.set(joi, 'assert', () => undefined);
  try {
    return schema.describe();
  } finally {
    Reflect.set(joi, 'assert', assert);
  }
}
