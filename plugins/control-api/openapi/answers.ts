/** Response schemas of this plugin's routes, except those of the configuration. */
import { Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';

const text = () => Joi.string().allow('').required();
const flag = () => Joi.boolean().required();
const count = () => Joi.number().integer().required();

const SHARE = Joi.object({
  name: text(),
  mounted: flag(),
  rc_port: count(),
  cache_bytes: count(),
  cache_display: text(),
  dirty_count: count(),
  errored_files: count(),
  speed: Joi.number().required(),
  speed_display: text(),
  transfers: count(),
  errors: count(),
  health: Joi.string().valid('pending', 'probing', 'healthy', 'failed').required(),
  health_message: text().allow(null),
  warmup_state: text(),
  warmup_done: count(),
  warmup_total: count(),
  dir_refresh_active: flag(),
  last_dir_refresh_ago: text().allow(null),
  last_dir_refresh_dirs_ok: count(),
  last_dir_refresh_dirs_failed: count(),
});
const RULE = Joi.object({
  share: text(),
  path: text(),
  newer_than: text().allow(null),
  state: text(),
  total_files: count(),
  skipped: count(),
  cached: count(),
  errors: count(),
});
const STATUS = Joi.object({
  uptime: text(),
  shares: Joi.array().items(SHARE).required(),
  smbd_running: flag(),
  webdav_running: flag(),
  nfs_exported: flag(),
  warmup: Joi.array().items(RULE).required(),
  nas_offline: flag(),
  all_synced: flag().description(
    'True only when nothing waits, is sent, is open with changes or has failed, and this is known of every share.',
  ),
});
const EXTENSIONS = Joi.object({
  extensions: Joi.object()
    .pattern(Joi.string(), Joi.object().unknown())
    .required()
    .description('Fields by the plugin that gives them, and by their own names.'),
});
const RATES = {
  up: Joi.number().required().description('Bytes per second; 0 is unlimited.'),
  down: Joi.number().required(),
};
const ANSWER = Joi.object({ ok: flag(), message: text() });
const LIMIT = Joi.object({
  up: Joi.string().default('0').description('Such as `10M` for 10 MiB/s; `0` is unlimited.'),
  down: Joi.string().default('0'),
});

export const DOCUMENTS = {
  status: {
    summary: 'The whole status',
    headers: { 'if-none-match': 'The `ETag` of the answer before.' },
    answers: { 200: STATUS, 304: null },
  },
  share: {
    summary: 'The status of one share',
    headers: { 'if-none-match': 'The `ETag` of the answer before.' },
    answers: { 200: SHARE, 304: null, 404: null },
  },
  extensions: {
    summary: 'What plugins add to the status',
    headers: { 'if-none-match': 'The `ETag` of the answer before.' },
    answers: { 200: EXTENSIONS, 304: null },
  },
  shareExtensions: {
    summary: 'What plugins add to the status of one share',
    headers: { 'if-none-match': 'The `ETag` of the answer before.' },
    answers: { 200: EXTENSIONS, 304: null, 404: null },
  },
  readLimit: {
    summary: 'The bandwidth limit in force',
    answers: {
      200: Joi.object({
        limit: Joi.object(RATES).required(),
        effective: Joi.object(RATES).required(),
        shares: Joi.array()
          .items(Joi.object({ share: text(), ...RATES }))
          .required(),
      }),
    },
  },
  setLimit: {
    summary: 'Sets the bandwidth limit until the configuration changes',
    body: LIMIT,
    answers: { 200: ANSWER, 400: ANSWER },
  },
  reconnect: { summary: 'Unmounts a share and probes it again', answers: { 200: ANSWER } },
  plugins: {
    summary: 'Every plugin and its state',
    answers: {
      200: Joi.array().items(
        Joi.object({
          name: text(),
          version: text(),
          description: text(),
          state: Joi.string().valid('disabled', 'waiting', 'active', 'failed', 'invalid').required(),
          reason: text().allow(null),
          effects: Joi.array().items(Joi.string()).required(),
          third_party: flag(),
          isolation: Joi.string().valid('own', 'shared', 'none').required(),
          permissions: Joi.array().items(Joi.string()).allow(null).required(),
        }),
      ),
    },
  },
  enablePlugin: {
    summary: 'Brings back a plugin that was switched off since it broke off',
    answers: { 200: ANSWER },
  },
  logLevel: {
    summary:
      'Sets from which level on a plugin logs, at once and in the file; "default": that of the whole daemon',
    body: Joi.object({
      level: text().description('trace, debug, info, warn, error, fatal, silent or default.'),
    }),
    answers: { 200: ANSWER, 400: ANSWER, 412: ANSWER, 500: ANSWER },
  },
  signIns: {
    summary: 'Who is signed in by cookie',
    answers: {
      200: Joi.array().items(
        Joi.object({
          id: text(),
          name: text(),
          role: Joi.string().valid('viewer', 'operator', 'admin').required(),
          address: text(),
          browser: text().allow(''),
          since: text(),
          last_request: text(),
        }),
      ),
    },
  },
  endSignIn: { summary: 'Signs somebody out who is signed in by cookie', answers: { 200: ANSWER } },
  notices: {
    summary: 'What the daemon has to say to people',
    answers: {
      200: Joi.array().items(
        Joi.object({ level: Joi.string().valid('info', 'warning', 'error').required(), message: text() }),
      ),
    },
  },
} satisfies Record<string, RouteDocument>;
