/**
 * What Joi says of a schema, asked once for each: Joi checks its own description, and every part of it anew,
 * against a schema for descriptions, which costs more than all else that is done with it.
 */
import type { Schema } from 'joi';

const known = new WeakMap<Schema, object>();

/** `schema.describe()`; not to be changed by anybody. */
export function described(schema: Schema): object {
  const description = known.get(schema) ?? schema.describe();
  known.set(schema, description);
  return description;
}
