/** Which rclone runs where the configuration names none: the one that `mountkeeper rclone use` has chosen. */
import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { NO_NAME, defaultRclone, setUpRclone } from '../config.ts';
import type { MountConfig } from '../config.ts';

/** The link in `<state_dir>/rclone/` that leads to the folder of the version in use. */
export const CHOSEN = 'chosen';
export const PROGRAM = 'rclone';

const OTHERS_WRITE = 0o022;

export function releasesFolder(stateDir: string): string {
  return join(stateDir, 'rclone');
}

/** Whether neither the file nor MOUNTKEEPER_RCLONE names the rclone to run. */
export function isUnnamed(rclone: string): boolean {
  return rclone === NO_NAME || rclone === setUpRclone();
}

/**
 * The rclone to run now: a name or a path. Looked up for each mount, so that a choice needs no change of the
 * configuration, which would mount every share anew. Throws a sentence where somebody else could change the
 * chosen one.
 */
export function rcloneToRun({ rclone }: Pick<MountConfig, 'rclone'>, stateDir: string): string {
  if (!isUnnamed(rclone)) return rclone;
  const version = chosenVersion(stateDir);
  if (version === undefined) return rclone;
  const folder = join(releasesFolder(stateDir), version);
  const program = join(folder, PROGRAM);
  for (const path of [releasesFolder(stateDir), folder, program]) refuseForeign(path);
  return program;
}

/** What runs where nothing is chosen. */
export function systemRclone(rclone: string): string {
  return isUnnamed(rclone) ? defaultRclone() : rclone;
}

/** Such as `v1.75.0`; undefined for the system's, and where the folder may not be read. */
export function chosenVersion(stateDir: string): string | undefined {
  try {
    return readlinkSync(join(releasesFolder(stateDir), CHOSEN));
  } catch {
    // Nothing was ever chosen. Whoever may not read the folder is told so by `doctor`.
    return undefined;
  }
}

function refuseForeign(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw new Error(
      `the rclone that was chosen is not there any more (${path}): ` +
        'run `mountkeeper rclone list`, then `mountkeeper rclone use VERSION`, or `use system`',
    );
  const isOurs = found.uid === 0 || found.uid === process.geteuid?.();
  if (!isOurs || found.isSymbolicLink() || (found.mode & OTHERS_WRITE) !== 0)
    throw new Error(
      `${path} could be changed by somebody else than root and the daemon's user, so it is not run: ` +
        'look at what is there, delete it, and run `mountkeeper rclone install`',
    );
}
