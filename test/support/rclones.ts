import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The rclone versions that the machine offers: the one on the PATH and, where MOUNTKEEPER_RCLONE points to one, a current one. */
export interface RcloneChoice {
  readonly label: string;
  readonly command: string;
}

/** The current one: the one that MOUNTKEEPER_RCLONE points to, or else the one that the set-up fetched. */
export function currentRclone(): string | undefined {
  const set = process.env['MOUNTKEEPER_RCLONE'];
  if (set !== undefined && set !== '') return set;
  const fetched = fileURLToPath(new URL('../../../.cache/rclone/usr/bin/rclone', import.meta.url));
  return existsSync(fetched) ? fetched : undefined;
}

export function rclones(): readonly RcloneChoice[] {
  const current = process.env['MOUNTKEEPER_RCLONE'];
  const system = { label: "the system's rclone", command: 'rclone' };
  return current === undefined || current === '' ? [system] : [system, { label: 'the current rclone', command: current }];
}
