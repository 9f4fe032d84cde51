/** What is to be warmed up, checked: by whoever sends the command, and from the file of a former daemon. */
import { Boom, Joi } from 'mountkeeper';
import { age, folder, folderOf } from './config.ts';
import type { Target } from './scheduler/task.ts';

/** The keys of a `Target`. */
export const TARGET_KEYS = {
  share: Joi.string().required(),
  path: folder().required(),
  newerThan: age().allow(null).required(),
  isDryRun: Joi.boolean().strict().required(),
};

const TARGET = Joi.object<Target, true>(TARGET_KEYS).required();

/** With its path normalised. Throws a sentence where it is none, or of no share. */
export function checkedTarget(given: unknown, isShare: (name: string) => boolean): Target {
  const { value, error } = TARGET.validate(given, { convert: false });
  if (error !== undefined) throw Boom.badRequest(`Invalid request: ${error.message}`);
  if (!isShare(value.share)) throw Boom.notFound(`Share '${value.share}' not found`);
  return { ...value, path: folderOf(value.path) ?? '' };
}
