/**
 * Caches `describe()` of each schema: Joi validates its own description, and every part of it again, which
 * costs more than everything else that is done with it.
 */
import type { Schema } from 'joi';

const known = new WeakMap<Schema, object>();

/** `schema.describe()`; must not be changed. */
export function described(schema: Schema): object {
  const description = known.get(schema) ?? schema.describe();
  known.set(schema, description);
  return description;
}
