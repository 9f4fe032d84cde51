import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FETCHED = fileURLToPath(new URL('../../../.cache/rclone/usr/bin/rclone', import.meta.url));

/** The rclone that the daemon mounts with: the one that MOUNTKEEPER_RCLONE names, the one that the set-up fetched, or the PATH's. */
export function currentRclone(): string {
  const named = process.env['MOUNTKEEPER_RCLONE'];
  if (named !== undefined && named !== '') return named;
  return existsSync(FETCHED) ? FETCHED : 'rclone';
}
