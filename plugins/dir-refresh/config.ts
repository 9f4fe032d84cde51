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

/** `"0"` or at least a second; texts that are no duration are refused by the type. */
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
    // The schema says what is wrong with it.
    return 0;
  }
}

export const schema = Joi.object<DirRefreshConfig, true>({
  interval: interval()
    .default('0')
    .description(
      'How often the folder listings of each share are read again from the remote; "0" switches that off.',
    ),
  recursive: Joi.boolean()
    .default(true)
    .description('Whether all folders of a share are refreshed, or only its topmost one.'),
}).meta({ tier: 'live' });

export const shareSchema = Joi.object({
  dir_refresh_interval: interval()
    .optional()
    .meta({ tier: 'live' })
    .description(
      'How often the folder listings of this share are read again, instead of dir_refresh.interval; ' +
        '"0" switches that off for this share.',
    ),
});

/** By the share's name. Every share is asked about each second, and a configuration never changes. */
const known = new WeakMap<Config, ReadonlyMap<string, number>>();

/** The share's own interval, else the one for all; 0 when it is off or the share does not exist. */
export function effectiveIntervalMs(config: Config, shareName: string): number {
  const intervals = known.get(config) ?? intervalsOf(config);
  known.set(config, intervals);
  return intervals.get(shareName) ?? 0;
}

function intervalsOf({ shares, dir_refresh }: Config): ReadonlyMap<string, number> {
  return new Map(
    shares.map(({ name, dir_refresh_interval = dir_refresh.interval }) => [
      name,
      durationMs(dir_refresh_interval),
    ]),
  );
}
