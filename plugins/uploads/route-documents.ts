/** Request and response schemas of the queue's routes. */
import { Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';

const text = () => Joi.string().allow('').required();
const count = () => Joi.number().integer().required();
const maybe = () => count().allow(null);

/** In a share. */
export const PATH = Joi.string()
  .max(4_096)
  .pattern(/(^|\/)\.\.(\/|$)|\0|^\/|\/$/, { invert: true });

const ENTRY = Joi.object({
  path: text(),
  action: text(),
  state: text(),
  bytes: count(),
  sent_bytes: maybe(),
  since: text().allow(null),
  reason: text(),
  tries: count(),
  next_try_at: text().allow(null),
  version: text().allow(null),
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
export const ANSWER = Joi.object({
  ok: Joi.boolean().required(),
  message: text(),
  id: Joi.string(),
  kept_at: Joi.string(),
});

export const QUEUES: RouteDocument = {
  summary: 'What waits to be uploaded, of all shares that may be written to',
  answers: { 200: Joi.object({ shares: Joi.array().items(QUEUE).required() }) },
};
export const ONE_QUEUE: RouteDocument = {
  summary: 'What waits to be uploaded of one share',
  query: {
    path: PATH.description(
      'Only entries of this path, and of what is in it: also those past the first 1,000.',
    ),
  },
  answers: { 200: QUEUE, 400: ANSWER, 404: null, 503: null },
};
const WORK = {
  share: text(),
  path: text(),
  state: Joi.string().valid('running', 'done', 'failed').required(),
  message: text(),
  checked: count(),
  files: count(),
};
export const RECEIPT = Joi.object({
  ...WORK,
  is_complete: Joi.boolean().required(),
  unproved: Joi.array()
    .items(Joi.object({ path: text(), reason: text() }))
    .required(),
  hash_list: text().allow(null),
});
export const ONE_RECEIPT: RouteDocument = {
  summary: 'A media hash list (ASC MHL) of files that are proved to be on the remote',
  answers: { 200: RECEIPT, 404: null },
};
export const HASH_LIST: RouteDocument = {
  summary: 'The media hash list of a receipt that is made, as a file',
  answers: { 200: 'application/xml', 404: null },
};
export const ONE_VERIFICATION: RouteDocument = {
  summary: 'How uploaded files that still lie here compare with what the remote has',
  answers: {
    200: Joi.object({
      ...WORK,
      is_equal: Joi.boolean().required(),
      waiting: count(),
      results: Joi.array()
        .items(
          Joi.object({
            path: text(),
            result: Joi.string().valid('hash', 'size', 'differs').required(),
            bytes: count(),
          }),
        )
        .required(),
    }),
    404: null,
  },
};
export const SUMMARIES = {
  send: 'Sends what waits, or one path, at once',
  pause: 'Pauses uploads for a while',
  conflicts: 'Ends a conflict',
  discard: 'Gives up one file that waits, in the version that the queue showed; it is kept for 7 days',
  verify: 'Begins to hold what was brought up against the remote',
  receipt: 'Begins to find out which files are proved to be on the remote',
} as const;
