/** Response schemas of the warmup's routes. */
import { Joi } from 'mountkeeper';

const text = () => Joi.string().allow('').required();
const flag = () => Joi.boolean().required();
const count = () => Joi.number().integer().required();

const TASK = Joi.object({
  share: text(),
  path: text(),
  newer_than: text().allow(null),
  dry_run: flag(),
  rule: flag(),
  state: text(),
  active: flag(),
  cache_full: flag(),
  total_files: count(),
  skipped: count(),
  cached: count(),
  errors: count(),
  total_bytes: count(),
  skipped_bytes: count(),
  cached_bytes: count(),
});
export const ANSWER = Joi.object({ ok: flag(), message: text(), tasks: Joi.array().items(TASK).required() });
