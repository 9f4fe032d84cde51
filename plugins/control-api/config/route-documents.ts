/** Request and response schemas of the configuration's routes. */
import { Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';

const BODY = Joi.object({
  toml: Joi.string().required().description('The whole configuration.'),
  keep_secrets: Joi.boolean()
    .default(false)
    .description(
      'The mask `********` stands for the secret that the running configuration has at the same key.',
    ),
});
const ANSWER = Joi.object({
  ok: Joi.boolean().required(),
  message: Joi.string().required(),
  diff_summary: Joi.string()
    .allow('', null)
    .required()
    .description('The difference in words, secrets masked; null where there is none to tell.'),
  still_open: Joi.array()
    .items(Joi.string())
    .description(
      'Protocols by which who may not come in any more, or a former password, may still be let in for a moment. Left ' +
        'out: by none; from this answer on the document holds for whoever comes.',
    ),
});
const PROBLEM = Joi.object({
  message: Joi.string().required(),
  path: Joi.string().description('Dotted: `shares[0].connection`.'),
  line: Joi.number().integer(),
  column: Joi.number().integer(),
});
const INTERRUPTS = Joi.object({
  shares: Joi.array()
    .items(Joi.string())
    .required()
    .description('Unmounted and mounted again, after their files were uploaded.'),
  servers: Joi.boolean().required().description('Clients on the LAN may have to connect again.'),
  restart: Joi.boolean().required().description('Some of it waits for the next start of the daemon.'),
  text: Joi.string().required().description('The same in words.'),
});
const VERDICT = Joi.object({
  ok: Joi.boolean().required(),
  message: Joi.string().allow('').required(),
  problems: Joi.array().items(PROBLEM).required(),
  warnings: Joi.array().items(Joi.string()).required(),
  diff_summary: Joi.string().allow('', null).required(),
  changes: Joi.array()
    .items(
      Joi.object({
        path: Joi.string().required(),
        tier: Joi.string().valid('live', 'protocol', 'per-share', 'global', 'restart').required(),
        before: Joi.any().description('Secrets masked; left out where there was nothing.'),
        after: Joi.any(),
      }),
    )
    .required(),
  interrupts: INTERRUPTS.allow(null).required(),
});
const VERSION = {
  version: Joi.string().required(),
  at: Joi.string().isoDate().required(),
  by: Joi.string()
    .valid('file', 'api', 'page', 'revert')
    .required()
    .description('The side from which it came; `revert`: taken back by the daemon.'),
  summary: Joi.string()
    .allow('')
    .required()
    .description('The difference from the version before; empty where that is not known.'),
};

export const DOCUMENTS = {
  read: {
    summary: 'The running configuration, secrets masked',
    answers: {
      200: Joi.any().description('Every key with its default filled in; null when it has no JSON form.'),
    },
  },
  apply: {
    summary: 'Checks, writes and applies a configuration',
    body: BODY,
    headers: { 'if-match': 'The `ETag` of what the text was made from.' },
    answers: {
      200: ANSWER,
      400: ANSWER,
      412: ANSWER.description('Another version runs; `diff_summary` says what has changed since.'),
      500: ANSWER,
    },
  },
  check: {
    summary: 'What a configuration would change; applies nothing',
    isQuestion: true,
    body: BODY,
    answers: { 200: VERDICT, 400: ANSWER },
  },
  history: {
    summary: 'Configurations that were applied, the newest first',
    answers: { 200: Joi.object({ versions: Joi.array().items(Joi.object(VERSION)).required() }) },
  },
  version: {
    summary: 'One of them, as text, and what putting it back would change',
    answers: {
      200: Joi.object({
        ...VERSION,
        toml: Joi.string().required().description('Secrets masked: send it back with `keep_secrets`.'),
        restoring: VERDICT.required(),
      }),
      404: null,
    },
  },
} satisfies Record<string, RouteDocument>;
