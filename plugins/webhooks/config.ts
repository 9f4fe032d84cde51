import { Joi, onlyInFile, secret } from 'mountkeeper';
import type { Config, ConfigProblem, Notice, Secret } from 'mountkeeper';
import { addressProblem, targetProblem } from './delivery/address.ts';
import { FORMATS } from './delivery/formats.ts';
import type { Format } from './delivery/formats.ts';

/** Of this plugin, or `<plugin>/<name>` of any. */
export type WebhookFormatName = Format | 'auto' | `${string}/${string}`;

export interface WebhooksConfig {
  webhook_url: string;
  webhook_secret: Secret;
  webhook_format: WebhookFormatName;
  allow_private: boolean;
  cache_threshold_pct: number;
  writeback_depth: number;
}

declare module 'mountkeeper' {
  interface NotificationsConfig {
    webhook_url: string;
    webhook_secret: Secret;
    webhook_format: WebhookFormatName;
    allow_private: boolean;
    cache_threshold_pct: number;
    writeback_depth: number;
  }
}

const OF_A_PLUGIN = /^[a-z][a-z0-9-]*\/[a-z][a-z0-9-]*$/;
const NAMES = ['auto', ...FORMATS].map((name) => `"${name}"`).join(', ');

const url = () =>
  Joi.string()
    .allow('')
    .max(2_048)
    .custom((value: string, helpers) => {
      const problem = addressProblem(value);
      return problem === undefined
        ? value
        : helpers.message({ custom: '{{#label}} {{#problem}}' }, { problem });
    });

export const schema = Joi.object<WebhooksConfig, true>({
  webhook_url: url()
    .default('')
    .meta({ secret: true })
    .description(
      'Where notifications are sent, http or https. Empty: nowhere. ' +
        'It reads as the mask wherever it is shown: with chat services it is the secret.',
    ),
  webhook_secret: secret()
    .default('')
    .description(
      'Signs the payload (generic, dingtalk, feishu) or is the access token (ntfy): ' +
        'the text itself, { env = "NAME" }, { file = "/path" } or { credential = "name" }.',
    ),
  webhook_format: Joi.string()
    .allow('auto', ...FORMATS)
    .pattern(OF_A_PLUGIN)
    .messages({
      'string.pattern.base': `{{#label}} must be one of ${NAMES}, or "<plugin>/<format>" of a plugin`,
    })
    .default('auto')
    .meta({ names: 'webhook format' })
    .description(
      `What the receiver understands: ${FORMATS.join(', ')}, or \`<plugin>/<format>\` of a plugin that gives one; ` +
        '"auto" tells it by the address, else it is "generic".',
    ),
  allow_private: Joi.boolean()
    .default(false)
    .meta({ fileOnly: true })
    .description(
      'Lets notifications go to loopback, link-local and metadata addresses. Addresses of the LAN need no permission.',
    ),
  cache_threshold_pct: Joi.number()
    .integer()
    .min(0)
    .max(100)
    .default(80)
    .description(
      'A notification is sent when a cache is fuller than this, in percent of cache.max_size or else ' +
        'of its file system. 0: none.',
    ),
  writeback_depth: Joi.number()
    .integer()
    .min(0)
    .default(0)
    .description(
      'A notification is sent when more files than this wait to be uploaded, all shares together. 0: none.',
    ),
}).meta({ tier: 'live' });

/** Why nothing is sent to the configured address; undefined when it is used. */
function refusal({
  webhook_url: url,
  allow_private: isAllowed,
}: Pick<WebhooksConfig, 'webhook_url' | 'allow_private'>): string | undefined {
  return url === '' || isAllowed || !URL.canParse(url) ? undefined : targetProblem(new URL(url));
}

export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  return [...secretProblems(next, current), ...targetProblems(next, current)];
}

/** A secret that only the file knows must not be sent elsewhere: some formats contain it in clear. */
function secretProblems(document: Config, running: Config): readonly ConfigProblem[] {
  const [next, current] = [document.notifications, running.notifications];
  if (typeof next.webhook_secret === 'string' || next.webhook_url === '') return [];
  const changed = (['webhook_url', 'webhook_format'] as const).filter((key) => next[key] !== current[key]);
  const why = 'cannot be changed over HTTP while webhook_secret is a reference';
  const paths = changed.map((key) => `notifications.${key}`);
  return paths.map((path) => ({ path, message: onlyInFile(`${path} ${why}`) }));
}

/** An address that is already in the file passes the check; nothing is sent to a refused address anyway. */
function targetProblems(next: Config, current: Config): readonly ConfigProblem[] {
  const path = 'notifications.webhook_url';
  const problem =
    next.notifications.webhook_url === current.notifications.webhook_url
      ? undefined
      : refusal(next.notifications);
  return problem === undefined ? [] : [{ path, message: `${path} ${problem}` }];
}

/** A refused address in the file does not invalidate the file, because then no share would be mounted. */
export function notices(config: Readonly<WebhooksConfig>): readonly Notice[] {
  const problem = refusal(config);
  return problem === undefined
    ? []
    : [{ level: 'error', message: `no notifications are sent: notifications.webhook_url ${problem}` }];
}

/** Nobody gives it just now: it may be off, or misspelt. */
export function unknownFormat(
  { webhook_url: url, webhook_format: format }: Readonly<WebhooksConfig>,
  names: () => readonly string[],
): readonly Notice[] {
  if (url === '' || !format.includes('/') || names().includes(format)) return [];
  return [
    {
      level: 'error',
      message: `no notifications are sent: no plugin that is up gives the format "${format}"`,
    },
  ];
}
