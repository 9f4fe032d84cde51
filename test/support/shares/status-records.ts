/** The status as it is while nothing has been looked at: the core's fields, and the defaults of the plugins. */
import { pino } from 'pino';
import type { Plugin, ShareStatus, StatusRecord } from 'mountkeeper';
import { Contributions } from '../../../core/plugins/contributions.ts';
import { dryRun } from '../../../core/plugins/instance/instance.ts';
import * as core from '../../../core/status.ts';
import dirRefresh from '../../../plugins/dir-refresh/index.ts';
import nasWatch from '../../../plugins/nas-watch/index.ts';
import nfs from '../../../plugins/nfs/index.ts';
import smb from '../../../plugins/smb/index.ts';
import warmup from '../../../plugins/warmup/index.ts';
import webdav from '../../../plugins/webdav/index.ts';

const log = pino({ level: 'silent' });
const ledgers = [dirRefresh, nasWatch, nfs, smb, warmup, webdav].map((plugin) =>
  dryRun(plugin as unknown as Plugin, log),
);
const contributions = new Contributions({
  ledgers: () => [],
  known: () => ledgers,
  clock: { monotonic: () => 0 },
  log,
});

/** Of a daemon that started at a time, in milliseconds since 1970. */
export function emptyRecord(startedAt: number): StatusRecord {
  return { ...core.emptyRecord(startedAt), ...contributions.defaults() } as StatusRecord;
}

/** Of a share that is not mounted yet. */
export function emptyShareStatus(name: string): ShareStatus {
  return { ...core.emptyShareStatus(name), ...contributions.shareStatus(name) } as ShareStatus;
}
