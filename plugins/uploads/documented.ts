/** What the routes of the queue take and answer. */
import { Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';

const text = () => Joi.string().allow('').required();
const count = () => Joi.number().integer().required();
const maybe = () => count().allow(null);

const ENTRY = Joi.object({
  path: text(),
  action: text(),
  state: text(),
  bytes: count(),
  sent_bytes: count(),
  since: text(),
  reason: text(),
  tries: count(),
  next_try_at: text().allow(null),
});
export const QUEUE = Joi.object({
  share: text(),
  dirty_files: maybe(),
  dirty_bytes: maybe(),
  oldest_dirty_at: text().allow(null),
  stuck_files: maybe(),
  paused_until: text().allow(null),
  entries: Joi.array().items(ENTRY).max(1_000).required(),
  conflicts: Joi.array()
    .items(Joi.object({ path: text(), copy: text(), what: text(), at: text() }))
    .required(),
});
export const ANSWER = Joi.object({ ok: Joi.boolean().required(), message: text(), files: Joi.array() });

export const QUEUES: RouteDocument = {
  summary: 'What waits to be uploaded, of all shares with a write layer',
  answers: { 200: Joi.object({ shares: Joi.array().items(QUEUE).required() }) },
};
export const ONE_QUEUE: RouteDocument = {
  summary: 'What waits to be uploaded of one share',
  answers: { 200: QUEUE, 404: null },
};
export const SUMMARIES = {
  send: 'Sends what waits, or one path, at once',
  pause: 'Pauses uploads for a while',
  conflicts: 'Ends a conflict',
  verify: 'Holds what was brought up against the remote',
} as const;
