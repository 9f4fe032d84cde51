import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { duration, filePath, Joi, size } from 'mountkeeper';
import type { Config } from 'mountkeeper';

export interface MountConfig {
  root: string;
  rclone: string;
  rclone_mirror: string;
  rclone_proxy: string;
  rclone_renew_after: string;
  chunk_size: string;
  chunk_limit: string;
  read_ahead: string;
  buffer_size: string;
  multi_thread_streams: number;
  multi_thread_cutoff: string;
  write_back: string;
  transfers: number;
  dir_cache_time: string;
  attr_timeout: string;
}

declare module 'mountkeeper' {
  interface Config {
    mount: MountConfig;
  }
  interface ShareConfig {
    exec?: boolean;
  }
}

/** `mount.rclone` where the file names none. */
export const NO_NAME = 'rclone';

/** Where `npm run setup` puts a current rclone when the one on the PATH is too old. */
const FETCHED = fileURLToPath(new URL('../../../.cache/rclone/usr/bin/rclone', import.meta.url));

/**
 * The rclone that the environment variable names (for tests, and for trying a version), else the one that
 * the set-up fetched, else the one on the PATH. Over the last two goes the one that `mountkeeper rclone use`
 * has chosen: see `releases/chosen.ts`.
 */
export function defaultRclone(env: NodeJS.ProcessEnv = process.env, fetched = FETCHED): string {
  const named = env['MOUNTKEEPER_RCLONE'];
  if (named !== undefined && named !== '') return named;
  return existsSync(fetched) ? fetched : NO_NAME;
}

/** The one that the set-up fetched; undefined where it fetched none. */
export function setUpRclone(): string | undefined {
  return existsSync(FETCHED) ? FETCHED : undefined;
}

export const schema = Joi.object<MountConfig, true>({
  root: filePath()
    .default('/mnt/mountkeeper')
    .meta({ fileOnly: true })
    .description('Folder in which shares are mounted that name no mount_point of their own.'),
  rclone: Joi.string()
    .default(NO_NAME)
    .meta({ fileOnly: true })
    .description(
      'The rclone to run, 1.70 or later: a name on the PATH or an absolute path. ' +
        'Left out, it is the one that MOUNTKEEPER_RCLONE names, else the one that `mountkeeper rclone use` ' +
        'has chosen, else the one that the set-up fetched, else the one on the PATH.',
    ),
  rclone_mirror: Joi.string()
    .uri({ scheme: ['http', 'https'] })
    .default('https://downloads.rclone.org')
    .meta({ fileOnly: true, tier: 'live' })
    .description(
      'Where `mountkeeper rclone install` fetches from: a mirror has the folders of the default one. ' +
        'What it sends is checked against the checksums that rclone has signed. Without a user and a password.',
    ),
  rclone_proxy: Joi.string()
    .uri({ scheme: ['http', 'https'] })
    .allow('')
    .default('')
    .meta({ fileOnly: true, tier: 'live' })
    .description(
      'HTTP proxy of `mountkeeper rclone install`, without a user and a password. Empty: as the variables ' +
        '`https_proxy`, `http_proxy` and `no_proxy` of that command say, which may hold them.',
    ),
  rclone_renew_after: duration()
    .default('5m')
    .meta({ tier: 'live' })
    .description(
      'How long nobody may have used a share before its mount, when it runs an older rclone than the one in use ' +
        'now, is renewed by itself; "0": never.',
    ),
  chunk_size: size().default('16M').description('Bytes asked of the remote at once when a file is read.'),
  chunk_limit: size()
    .default('64M')
    .description(
      'Size up to which the chunks double while a file is read on; "0" lets them grow without a limit.',
    ),
  read_ahead: size().default('32M').description('Bytes read ahead of a reader into the cache on disk.'),
  buffer_size: size().default('16M').description('Memory for reading ahead, per open file.'),
  multi_thread_streams: Joi.number()
    .integer()
    .min(0)
    .max(64)
    .default(4)
    .description(
      'Parts of one large file uploaded in parallel, where the kind of remote can; 0 or 1: one after another.',
    ),
  multi_thread_cutoff: size()
    .default('64M')
    .description('Files above this size are uploaded in several parts.'),
  write_back: duration()
    .default('5s')
    .description('Quiet time after a file is closed before it is uploaded.'),
  transfers: Joi.number()
    .integer()
    .min(1)
    .max(64)
    .default(4)
    .description('Files of one share uploaded in parallel.'),
  dir_cache_time: duration()
    .default('15m')
    .description(
      'How long a folder listing is trusted; changes made elsewhere on the remote show no later than this.',
    ),
  attr_timeout: duration().default('1s').description('How long the kernel trusts sizes and times of files.'),
}).meta({ tier: 'global' });

export const shareSchema = Joi.object({
  exec: Joi.boolean()
    .default(false)
    .meta({ tier: 'per-share', fileOnly: 'but-default' })
    .description('Let programs that lie on the share be run from its mount. Set-user-ID bits never count.'),
});

/** Fills in the `rclone` to run, and mount points from the shares' names. */
export function complete(config: Config): void {
  if (config.mount.rclone === NO_NAME) config.mount.rclone = defaultRclone();
  for (const share of config.shares) {
    if (!share.mount_point)
      share.mount_point = `${config.mount.root.replace(/(?<!\/)\/+$/, '')}/${share.name}`;
  }
}
