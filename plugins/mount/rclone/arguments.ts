import { durationMs, sizeBytes } from 'mountkeeper';
import type { Config, ShareSpec } from 'mountkeeper';
import { rcloneDirCacheMs } from './listing-age.ts';
import { REMOTE } from '../options/remote-config.ts';

/** Where and as whom one rclone runs. */
export interface RcloneEnvironment {
  readonly configFile: string;
  readonly cacheDir: string;
  /** Where rclone's remote control is to listen: `127.0.0.1:PORT`, or `unix://PATH`. */
  readonly rcAddress: string;
  /** Mounts may be used by other users than the daemon's own. */
  readonly allowOther: boolean;
  readonly uid: number;
  readonly gid: number;
  /**
   * Mounted for an overlay alone, which needs inode numbers that leave room for its own: those of `mount` are
   * hashes.
   */
  readonly isLower?: boolean;
}

/**
 * Patient with a NAS that is slow or wakes up its disks; one that is known to be away is not even dialled.
 */
export const TIMEOUT_FLAGS = { contimeout: '10s', timeout: '20s' } as const;

/**
 * Of a mount below an overlay. rclone gives the files of a listing that it drops by itself other numbers,
 * which the overlay takes for other files. And a file that was changed on the remote is copied up by the size
 * that the kernel still has in mind: the copy would be cut short, or filled with zeros, and be brought to the
 * remote.
 */
const LOWER_FLAGS = { 'dir-cache-time': '100000h', 'poll-interval': '0', 'attr-timeout': '0s' } as const;

/**
 * How often rclone counts its cache and makes room in it. A count of 20,000 files takes it some 12 ms of
 * processor time.
 */
const CACHE_COUNT_EVERY = '15s';

/** Tries of one call that fails in passing. */
export const TRIES = 3;
/**
 * Whose tries are for dialling only, and up to 2 s apart each: rclone gives up a read after eleven failures
 * of all of them.
 */
const TRIES_ARE_DIALS: ReadonlySet<string> = new Set(['sftp', 'smb']);

export function remotePath(spec: ShareSpec): string {
  return `${REMOTE}:${spec.share.remote_path}`;
}

/** Shown by the kernel as the source of the mount: tells our own mounts from others'. */
export function deviceName(shareName: string): string {
  return `mountkeeper:${shareName}`;
}

export function mountArguments(
  spec: ShareSpec,
  config: Config,
  around: RcloneEnvironment,
): readonly string[] {
  const tries = { 'low-level-retries': String(TRIES_ARE_DIALS.has(spec.connection.type) ? 1 : TRIES) };
  const flags = {
    ...TIMEOUT_FLAGS,
    ...tries,
    ...cacheFlags(config, around),
    ...transferFlags(config),
    ...accessFlags(around),
    ...(around.isLower === true && LOWER_FLAGS),
  };
  return [
    around.isLower === true ? 'mount2' : 'mount',
    remotePath(spec),
    spec.share.mount_point,
    `--config=${around.configFile}`,
    `--devname=${deviceName(spec.share.name)}`,
    '--rc',
    `--rc-addr=${around.rcAddress}`,
    '--log-level=NOTICE',
    ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    ...(around.allowOther ? ['--allow-other'] : []),
    ...(spec.share.read_only ? ['--read-only'] : []),
  ];
}

function cacheFlags({ cache, mount }: Config, around: RcloneEnvironment): Record<string, string> {
  return {
    'cache-dir': around.cacheDir,
    'vfs-cache-mode': 'full',
    'vfs-cache-max-age': milliseconds(cache.max_age),
    'vfs-cache-max-size': limit(cache.max_size),
    'vfs-cache-min-free-space': limit(cache.min_free_space),
    // Comparing hashes would have an SFTP server read every file through when it is opened.
    'vfs-fast-fingerprint': 'true',
    'vfs-cache-poll-interval': CACHE_COUNT_EVERY,
    'vfs-write-back': milliseconds(mount.write_back),
    'dir-cache-time': `${rcloneDirCacheMs(durationMs(mount.dir_cache_time))}ms`,
    'attr-timeout': milliseconds(mount.attr_timeout),
  };
}

/**
 * Without `vfs-read-chunk-streams`: a range that fails leaves its reader waiting for ever, whether the NAS
 * comes back or not.
 */
function transferFlags({ mount }: Config): Record<string, string> {
  return {
    'vfs-read-chunk-size': bytes(mount.chunk_size),
    'vfs-read-chunk-size-limit': limit(mount.chunk_limit),
    'vfs-read-ahead': bytes(mount.read_ahead),
    'buffer-size': bytes(mount.buffer_size),
    'multi-thread-streams': String(Math.max(1, mount.multi_thread_streams)),
    'multi-thread-cutoff': bytes(mount.multi_thread_cutoff),
    transfers: String(mount.transfers),
  };
}

/**
 * Everything belongs to the daemon's user and nobody else gets in: the kernel checks the modes, since rclone
 * itself does not. The x bits carry the attributes that SMB's leases and durable handles need.
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

function limit(text: string): string {
  const size = sizeBytes(text);
  return size === 0 ? 'off' : `${size}B`;
}
