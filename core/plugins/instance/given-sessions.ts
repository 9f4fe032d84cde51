/** Sessions as a plugin tells them: checked and copied, since it may be a stranger's. */
import Joi from 'joi';
import type { ClientSession } from '../../contract/exporter.ts';
import { plainCopy, UnfitValue } from './given-values.ts';

const MOST_SESSIONS = 10_000;
const LONGEST_NAME = 256;

const name = (): Joi.StringSchema => Joi.string().max(LONGEST_NAME);
/** Left out counts as not known. */
const known = (schema: Joi.Schema): Joi.Schema => schema.allow(null).default(null);
const count = (): Joi.NumberSchema => Joi.number().integer().min(0);

const SESSIONS = Joi.array()
  .max(MOST_SESSIONS)
  .items(
    Joi.object({
      id: Joi.string()
        .pattern(/^[\w.:-]{1,100}$/)
        .required(),
      user: known(name().allow('')),
      address: name().allow('').required(),
      shares: known(Joi.array().items(name())),
      since: known(count()),
      lastAt: known(count()),
      bytesToClient: known(count()),
      bytesFromClient: known(count()),
    }),
  )
  .unique('id')
  .required();

/** Throws an `UnfitValue`, and whatever a getter throws. */
export function clientSessions(value: unknown): readonly ClientSession[] {
  const { value: checked, error } = SESSIONS.validate(plainCopy(value), { convert: false });
  if (error) throw new UnfitValue(`the plugin tells of sessions what cannot be used: ${error.message}`);
  return checked as readonly ClientSession[];
}
