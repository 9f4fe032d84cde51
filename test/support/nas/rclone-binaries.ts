/** Which rclone is used for what: a current one for mounts, the PATH's for the NAS. */
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

const FETCHED = fileURLToPath(new URL('../../../../.cache/rclone/usr/bin/rclone', import.meta.url));

/**
 * The rclone that the daemon mounts with: the one that MOUNTKEEPER_RCLONE names, the one that the set-up
 * fetched, or the PATH's.
 */
export function currentRclone(): string {
  const named = process.env['MOUNTKEEPER_RCLONE'];
  if (named !== undefined && named !== '') return named;
  return existsSync(FETCHED) ? FETCHED : 'rclone';
}

/**
 * The rclone that plays a NAS: the machine's own where it has one, which is another version than the daemon's
 * on most.
 */
export function nasRclone(): string {
  const isOnPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => existsSync(`${folder}/rclone`));
  return isOnPath ? 'rclone' : currentRclone();
}
