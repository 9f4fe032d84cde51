import { cronProblem, duration, Joi } from 'mountkeeper';
import type { Config, ConfigProblem } from 'mountkeeper';

export interface WarmupRule {
  share: string;
  path: string;
  newer_than?: string;
}

export interface WarmupConfig {
  auto: boolean;
  warmup_schedule: string;
  timezone: string;
  concurrency: number;
  rules: WarmupRule[];
}

declare module 'mountkeeper' {
  interface Config {
    warmup: WarmupConfig;
  }
}

/** Any valid expression, to check the time zone with. */
const EVERY_MINUTE = '* * * * *';

const checked = (problemOf: (value: string) => string | undefined) =>
  Joi.string()
    .allow('')
    .custom((value: string, helpers) => {
      const reason = value.trim() === '' ? undefined : problemOf(value);
      return reason === undefined
        ? value
        : helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason });
    });

/** The folder below the share, without empty parts; undefined when it would leave the share. */
export function folderOf(path: string): string | undefined {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return path.includes('\0') || parts.includes('..') ? undefined : parts.join('/');
}

/** A folder below the share, normalised. */
export const folder = (): Joi.StringSchema =>
  Joi.string()
    .allow('')
    .custom(
      (value: string, helpers) =>
        folderOf(value) ??
        helpers.message({ custom: '{{#label}} must be a folder below the share, such as "photos/2024"' }),
    );

/** At least 1 s: `"0"`, which means unlimited elsewhere, would exclude every file here. */
export const age = (): Joi.StringSchema => duration({ min: '1s' });

export const schema = Joi.object<WarmupConfig, true>({
  auto: Joi.boolean().default(true).description('Whether the rules run once a share becomes healthy.'),
  warmup_schedule: checked((value) => cronProblem(value))
    .default('')
    .description(
      'When all rules run: a cron expression of five fields, such as "0 3 * * *" for every day at ' +
        '03:00; empty for never.',
    ),
  timezone: checked((value) => cronProblem(EVERY_MINUTE, value))
    .default('')
    .meta({ names: 'time zone' })
    .description('Time zone of the schedule, such as "Europe/Berlin"; empty for the system\'s.'),
  concurrency: Joi.number()
    .integer()
    .min(1)
    .max(64)
    .default(16)
    .description('Files of one share read at once; fewer where they are large, and one while users read.'),
  rules: Joi.array()
    .default([])
    .description('What is to lie in the cache before anybody asks for it.')
    .items(
      Joi.object({
        share: Joi.string().required().meta({ names: 'share' }).description('Name of the share.'),
        path: folder()
          .default('')
          .description('Folder in the share, with all below it; empty for the whole share.'),
        newer_than: age().optional().description('Only files changed within this time; left out, all files.'),
      }),
    ),
}).meta({ tier: 'live' });

/** Rules must name shares that exist. */
export function check(config: Config): readonly ConfigProblem[] {
  const names = config.shares.map((share) => share.name);
  return config.warmup.rules.flatMap((rule, index) =>
    names.includes(rule.share)
      ? []
      : [
          {
            path: `warmup.rules[${index}].share`,
            message:
              `there is no share "${rule.share}"; take the rule out or name one of: ` +
              `${names.join(', ') || '(no share is configured)'}`,
          },
        ],
  );
}
