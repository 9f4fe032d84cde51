/** The API's edge for status: the record's names to the API's, numbers to readable texts. */
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

export function shareView(share: ShareStatus, now: number): ShareView {
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
    warmup_state: share.warmupState,
    warmup_done: share.warmupDone,
    warmup_total: share.warmupTotal,
    dir_refresh_active: share.dirRefreshActive,
    last_dir_refresh_ago:
      share.lastDirRefreshAt === null ? null : `${formatDuration(now - share.lastDirRefreshAt)} ago`,
    last_dir_refresh_dirs_ok: share.lastDirRefreshDirsOk,
    last_dir_refresh_dirs_failed: share.lastDirRefreshDirsFailed,
  };
}

function warmupView(rule: WarmupRuleStatus): WarmupRuleView {
  return {
    share: rule.share,
    path: rule.path,
    newer_than: rule.newerThan,
    state: rule.state,
    total_files: rule.totalFiles,
    skipped: rule.skipped,
    cached: rule.cached,
    errors: rule.errors,
  };
}

/** Relative times count up to the moment of the snapshot. */
export function statusView({ record, takenAt }: Snapshot): StatusView {
  return {
    uptime: formatDuration(takenAt - record.startedAt),
    shares: record.shares.map((share) => shareView(share, takenAt)),
    smbd_running: record.smbdRunning,
    webdav_running: record.webdavRunning,
    nfs_exported: record.nfsExported,
    warmup: record.warmup.map(warmupView),
    nas_offline: record.nasOffline,
    all_synced: record.allSynced,
  };
}
