import { Joi, onlyInFile, secret } from 'mountkeeper';
import type { Config, ConfigProblem, Secret } from 'mountkeeper';
import { addressProblem } from './address.ts';
import { FORMATS } from './formats.ts';
import type { Format } from './formats.ts';

export interface WebhooksConfig {
  webhook_url: string;
  webhook_secret: Secret;
  webhook_format: Format | 'auto';
  cache_threshold_pct: number;
  writeback_depth: number;
}

declare module 'mountkeeper' {
  interface NotificationsConfig {
    webhook_url: string;
    webhook_secret: Secret;
    webhook_format: Format | 'auto';
    cache_threshold_pct: number;
    writeback_depth: number;
  }
}

const url = () => Joi.string().allow('').max(2_048).custom((value: string, helpers) => {
  const problem = addressProblem(value);
  return problem === undefined ? value : helpers.message({ custom: '{{#label}} {{#problem}}' }, { problem });
});

export const schema = Joi.object<WebhooksConfig, true>({
  webhook_url: url().default('').description('Where notifications are sent, http or https. Empty: nowhere.'),
  webhook_secret: secret().default('')
    .description('Signs the payload (generic, dingtalk, feishu) or is the access token (ntfy): the text itself, { env = "NAME" }, { file = "/path" } or { credential = "name" }.'),
  webhook_format: Joi.string().valid('auto', ...FORMATS).default('auto').description('What the receiver understands; "auto" tells it by the address, else it is "generic".'),
  cache_threshold_pct: Joi.number().integer().min(0).max(100).default(80)
    .description('A notification is sent when a cache is fuller than this, in percent of cache.max_size or else of its file system. 0: none.'),
  writeback_depth: Joi.number().integer().min(0).default(0).description('A notification is sent when more files than this wait to be uploaded, all shares together. 0: none.'),
}).meta({ tier: 'live' });

/** A secret that only the file knows is not sent elsewhere: some formats carry it as it is. */
export function checkUntrusted(document: Config, running: Config): readonly ConfigProblem[] {
  const [next, current] = [document.notifications, running.notifications];
  if (typeof next.webhook_secret === 'string' || next.webhook_url === '') return [];
  const changed = (['webhook_url', 'webhook_format'] as const).filter((key) => next[key] !== current[key]);
  const why = 'cannot be changed over HTTP while webhook_secret is a reference';
  const paths = changed.map((key) => `notifications.${key}`);
  return paths.map((path) => ({ path, message: onlyInFile(`${path} ${why}`) }));
}
