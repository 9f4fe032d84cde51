import { duration, durationMs, Joi } from 'mountkeeper';
import type { Config } from 'mountkeeper';

export interface DirRefreshConfig {
  interval: string;
  recursive: boolean;
}

declare module 'mountkeeper' {
  interface Config {
    dir_refresh: DirRefreshConfig;
  }
  interface ShareConfig {
    dir_refresh_interval?: string;
  }
}

const LEAST_MS = 1_000;

/** `"0"` or at least a second; what is no duration at all is refused by its type. */
const interval = () =>
  duration().custom((value: string, helpers) => {
    const ms = durationOf(value);
    return ms > 0 && ms < LEAST_MS
      ? helpers.message({ custom: '{{#label}} must be "0" or at least "1s"' })
      : value;
  });

function durationOf(text: string): number {
  try {
    return durationMs(text);
  } catch {
    return 0;
  }
}

export const schema = Joi.object<DirRefreshConfig, true>({
  interval: interval()
    .default('0')
    .description(
      'How often the folder listings of each share are read anew from the remote; "0" switches that off.',
    ),
  recursive: Joi.boolean()
    .default(true)
    .description('Whether all folders of a share are read anew, or only its topmost one.'),
}).meta({ tier: 'live' });

export const shareSchema = Joi.object({
  dir_refresh_interval: interval()
    .optional()
    .meta({ tier: 'live' })
    .description(
      'How often the folder listings of this share are read anew, in place of dir_refresh.interval; "0" switches that off for this share.',
    ),
});

/** The share's own interval, else the one for all; 0 when it is off or there is no such share. */
export function effectiveIntervalMs(config: Config, shareName: string): number {
  const share = config.shares.find(({ name }) => name === shareName);
  return share ? durationMs(share.dir_refresh_interval ?? config.dir_refresh.interval) : 0;
}
