import { duration, filePath, Joi, size } from 'mountkeeper';
import type { Config } from 'mountkeeper';

export interface MountConfig {
  root: string;
  rclone: string;
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
  write_layer: boolean;
}

declare module 'mountkeeper' {
  interface Config {
    mount: MountConfig;
  }
}

/** The environment names another rclone than the one on the PATH, for tests and for trying a new version. */
export function defaultRclone(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['MOUNTKEEPER_RCLONE'];
  return named === undefined || named === '' ? 'rclone' : named;
}

export const schema = Joi.object<MountConfig, true>({
  root: filePath().default('/mnt/mountkeeper').description('Folder in which shares are mounted that name no mount_point of their own.'),
  rclone: Joi.string().default('rclone')
    .description('The rclone to run: a name on the PATH or an absolute path. Left out, the environment variable MOUNTKEEPER_RCLONE overrides it.'),
  chunk_size: size().default('16M').description('Bytes asked of the remote at once when a file is read.'),
  chunk_limit: size().default('64M').description('Size up to which the chunks double while a file is read on; "0" lets them grow without a limit.'),
  read_ahead: size().default('32M').description('Bytes read ahead of a reader into the cache on disk.'),
  buffer_size: size().default('16M').description('Memory for reading ahead, per open file.'),
  multi_thread_streams: Joi.number().integer().min(0).max(64).default(4).description('Parts of one large file uploaded in parallel, where the kind of remote can; 0 or 1: one after another.'),
  multi_thread_cutoff: size().default('64M').description('Files above this size are uploaded in several parts.'),
  write_back: duration().default('5s').description('Quiet time after a file is closed before it goes up.'),
  transfers: Joi.number().integer().min(1).max(64).default(4).description('Files of one share uploaded in parallel.'),
  dir_cache_time: duration().default('15m').description('How long a folder listing is trusted; changes made elsewhere on the remote show no later than this.'),
  attr_timeout: duration().default('1s').description('How long the kernel trusts sizes and times of files.'),
  write_layer: Joi.boolean().default(false)
    .description('Users write to the local disk, and the daemon brings it to the remote; rclone only reads. Needs root and overlayfs.'),
}).meta({ tier: 'global' });

/** `rclone` of the environment, where the file names none, and mount points from the shares' names. */
export function complete(config: Config): void {
  if (config.mount.rclone === 'rclone') config.mount.rclone = defaultRclone();
  for (const share of config.shares) {
    if (!share.mount_point) share.mount_point = `${config.mount.root.replace(/\/+$/, '')}/${share.name}`;
  }
}
