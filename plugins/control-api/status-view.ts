/** Converts the status to the API's form: names in snake_case, numbers as readable texts. */
import { formatBytes, formatDuration, formatRate } from 'mountkeeper';
import type { ShareStatus, Snapshot, WarmupRuleStatus } from 'mountkeeper';

export interface ShareView {
  name: string;
  mounted: boolean;
  rc_port: number;
  cache_bytes: number;
  cache_display: string;
  dirty_count: number;
  errored_files: number;
  speed: number;
  speed_display: string;
  transfers: number;
  errors: number;
  health: string;
  health_message: string | null;
  warmup_state: string;
  warmup_done: number;
  warmup_total: number;
  dir_refresh_active: boolean;
  last_dir_refresh_ago: string | null;
  last_dir_refresh_dirs_ok: number;
  last_dir_refresh_dirs_failed: number;
}

export interface WarmupRuleView {
  share: string;
  path: string;
  newer_than: string | null;
  state: string;
  total_files: number;
  skipped: number;
  cached: number;
  errors: number;
}

export interface StatusView {
  uptime: string;
  shares: ShareView[];
  smbd_running: boolean;
  webdav_running: boolean;
  nfs_exported: boolean;
  warmup: WarmupRuleView[];
  nas_offline: boolean;
  all_synced: boolean;
}

const WARMUP_STATES = new Set<unknown>(['none', 'pending', 'listing', 'caching', 'complete', 'failed']);

// Whatever plugins there are, and whatever they say, the API answers the fields of its contract, of their kind.
const flag = (value: unknown): boolean => value === true;
const count = (value: unknown): number =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
const moment = (value: unknown): number | null => (typeof value === 'number' && value >= 0 ? value : null);

export function shareView(share: ShareStatus, now: number): ShareView {
  const refreshedAt = moment(share.lastDirRefreshAt);
  return {
    name: share.name,
    mounted: share.mounted,
    rc_port: share.rcPort,
    cache_bytes: share.cacheBytes,
    cache_display: formatBytes(share.cacheBytes),
    dirty_count: share.dirtyCount,
    errored_files: share.erroredFiles,
    speed: share.speed,
    speed_display: formatRate(share.speed),
    transfers: share.transfers,
    errors: share.errors,
    health: share.health,
    health_message: share.healthMessage,
    warmup_state: WARMUP_STATES.has(share.warmupState) ? share.warmupState : 'none',
    warmup_done: count(share.warmupDone),
    warmup_total: count(share.warmupTotal),
    dir_refresh_active: flag(share.dirRefreshActive),
    last_dir_refresh_ago: refreshedAt === null ? null : `${formatDuration(now - refreshedAt)} ago`,
    last_dir_refresh_dirs_ok: count(share.lastDirRefreshDirsOk),
    last_dir_refresh_dirs_failed: count(share.lastDirRefreshDirsFailed),
  };
}

function isRule(value: unknown): value is WarmupRuleStatus {
  if (typeof value !== 'object' || value === null) return false;
  const { share, path, newerThan, state } = value as Partial<Record<keyof WarmupRuleStatus, unknown>>;
  const areTexts = [share, path, newerThan ?? ''].every((text) => typeof text === 'string');
  return areTexts && state !== 'none' && WARMUP_STATES.has(state);
}

function warmupView(rule: WarmupRuleStatus): WarmupRuleView {
  return {
    share: rule.share,
    path: rule.path,
    newer_than: rule.newerThan ?? null,
    state: rule.state,
    total_files: count(rule.totalFiles),
    skipped: count(rule.skipped),
    cached: count(rule.cached),
    errors: count(rule.errors),
  };
}

function rulesOf(value: unknown): readonly WarmupRuleStatus[] {
  return Array.isArray(value) ? value.filter(isRule) : [];
}

/**
 * Relative times count up to the moment of the snapshot. With `only`, of these shares alone; what is said of the
 * daemon as a whole names none, and stays true of all.
 */
export function statusView({ record, takenAt }: Snapshot, only?: readonly string[]): StatusView {
  const isShown = (share: string): boolean => only === undefined || only.includes(share);
  return {
    uptime: formatDuration(takenAt - record.startedAt),
    shares: record.shares.filter(({ name }) => isShown(name)).map((share) => shareView(share, takenAt)),
    smbd_running: flag(record.smbdRunning),
    webdav_running: flag(record.webdavRunning),
    nfs_exported: flag(record.nfsExported),
    warmup: rulesOf(record.warmup)
      .filter(({ share }) => isShown(share))
      .map(warmupView),
    nas_offline: flag(record.nasOffline),
    all_synced: record.allSynced,
  };
}
