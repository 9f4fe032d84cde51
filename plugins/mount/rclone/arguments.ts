import { durationMs, sizeBytes } from 'mountkeeper';
import type { Config, ShareSpec } from 'mountkeeper';
import { rcloneDirCacheMs } from './listing-age.ts';
import { REMOTE } from '../options/remote-config.ts';

/** Where and as which user one rclone runs. */
export interface RcloneEnvironment {
  readonly configFile: string;
  readonly cacheDir: string;
  /** Address of rclone's remote control: `127.0.0.1:PORT`, or `unix://PATH`. */
  readonly rcAddress: string;
  /** Other users than the daemon's own may use the mount. */
  readonly allowOther: boolean;
  readonly uid: number;
  readonly gid: number;
  /**
   * True for a mount below an overlay, whose inode numbers must leave room for the overlay's own bits:
   * those of `rclone mount` are hashes.
   */
  readonly isLower?: boolean;
  /** What users write lies beside rclone's cache, on the same disk. */
  readonly isWritable?: boolean;
}

/**
 * Patient with a NAS that is slow or spins up its disks; a NAS that is known to be away is not even
 * dialled.
 */
export const TIMEOUT_FLAGS = { contimeout: '10s', timeout: '20s' } as const;

/**
 * Flags of a mount below an overlay. When rclone drops a listing by itself, its files get other inode
 * numbers, and the overlay takes them for other files. And a file that was changed on the remote is copied
 * up with the size that the kernel has cached: the copy would be truncated or filled with zeros, and then
 * uploaded.
 */
const LOWER_FLAGS = {
  'dir-cache-time': '100000h',
  'poll-interval': '0',
  'attr-timeout': '0s',
} as const;

/** The part of `cache.max_size` that is rclone's where users write, too: what they wrote always has the rest. */
export const READ_PART = 3 / 4;

/**
 * How often rclone measures its cache and cleans it. Measuring 20,000 files takes about 12 ms of processor
 * time.
 */
const CACHE_COUNT_EVERY = '15s';

/** Attempts of one call that fails temporarily. */
export const TRIES = 3;
/**
 * Backends that use the attempts only for dialling, with pauses of up to 2 s: there rclone gives up a read
 * after eleven failures in all.
 */
const TRIES_ARE_DIALS: ReadonlySet<string> = new Set(['sftp', 'smb']);

export function remotePath(spec: ShareSpec): string {
  return `${REMOTE}:${spec.share.remote_path}`;
}

/** The mount's source in the kernel's mount table: tells our own mounts from others. */
export function deviceName(shareName: string): string {
  return `mountkeeper:${shareName}`;
}

export function mountArguments(
  spec: ShareSpec,
  config: Config,
  around: RcloneEnvironment,
): readonly string[] {
  const flags = {
    ...sharedFlags(spec, config, around),
    ...accessFlags(around),
    'attr-timeout': milliseconds(config.mount.attr_timeout),
    ...(around.isLower === true && LOWER_FLAGS),
  };
  return [
    around.isLower === true ? 'mount2' : 'mount',
    remotePath(spec),
    spec.share.mount_point,
    `--devname=${deviceName(spec.share.name)}`,
    '--rc',
    ...common(flags, around),
    ...(around.allowOther ? ['--allow-other'] : []),
    '--read-only',
  ];
}

/** Of one that mounts nothing, for what a former version left in the cache: it is only told what to do. */
export function sendArguments(
  spec: ShareSpec,
  { mount }: Config,
  around: RcloneEnvironment,
): readonly string[] {
  return ['rcd', ...common({ ...connectionFlags(spec), ...copyFlags(mount) }, around)];
}

function common(flags: Record<string, string>, around: RcloneEnvironment): readonly string[] {
  return [
    `--config=${around.configFile}`,
    `--rc-addr=${around.rcAddress}`,
    '--log-level=NOTICE',
    ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
  ];
}

function sharedFlags(spec: ShareSpec, config: Config, around: RcloneEnvironment): Record<string, string> {
  return {
    ...connectionFlags(spec),
    ...cacheFlags(config, around),
    ...transferFlags(config),
  };
}

function connectionFlags(spec: ShareSpec): Record<string, string> {
  return {
    ...TIMEOUT_FLAGS,
    'low-level-retries': String(TRIES_ARE_DIALS.has(spec.connection.type) ? 1 : TRIES),
  };
}

function cacheFlags({ cache, mount }: Config, around: RcloneEnvironment): Record<string, string> {
  return {
    'cache-dir': around.cacheDir,
    'vfs-cache-mode': 'full',
    'vfs-cache-max-age': milliseconds(cache.max_age),
    'vfs-cache-max-size': limit(cache.max_size, around.isWritable === true ? READ_PART : 1),
    'vfs-cache-min-free-space': limit(cache.min_free_space),
    // Comparing hashes would make an SFTP server read every file completely when it is opened.
    'vfs-fast-fingerprint': 'true',
    'vfs-cache-poll-interval': CACHE_COUNT_EVERY,
    'dir-cache-time': `${rcloneDirCacheMs(durationMs(mount.dir_cache_time))}ms`,
  };
}

/**
 * Does not set `vfs-read-chunk-streams`: a range that fails would leave its reader waiting for ever, even
 * after the NAS comes back.
 */
function transferFlags({ mount }: Config): Record<string, string> {
  return {
    'vfs-read-chunk-size': bytes(mount.chunk_size),
    'vfs-read-chunk-size-limit': limit(mount.chunk_limit),
    'vfs-read-ahead': bytes(mount.read_ahead),
    ...copyFlags(mount),
  };
}

function copyFlags(mount: Config['mount']): Record<string, string> {
  return {
    'buffer-size': bytes(mount.buffer_size),
    'multi-thread-streams': String(Math.max(1, mount.multi_thread_streams)),
    'multi-thread-cutoff': bytes(mount.multi_thread_cutoff),
    transfers: String(mount.transfers),
  };
}

/**
 * Everything belongs to the daemon's user, and the kernel checks the modes, because rclone itself does not.
 * The x bits store the DOS attributes that SMB's leases and durable handles need.
 */
function accessFlags(around: RcloneEnvironment): Record<string, string> {
  return {
    uid: String(around.uid),
    gid: String(around.gid),
    umask: '0077',
    'dir-perms': '0777',
    'file-perms': '0777',
    'default-permissions': 'true',
  };
}

function milliseconds(text: string): string {
  return `${durationMs(text)}ms`;
}

function bytes(text: string): string {
  return `${sizeBytes(text)}B`;
}

function limit(text: string, part = 1): string {
  const size = Math.floor(sizeBytes(text) * part);
  return size === 0 ? 'off' : `${size}B`;
}
