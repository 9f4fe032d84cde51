/** Which rclone runs where the configuration names none: the one that `mountkeeper rclone use` has chosen. */
import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { NO_NAME, defaultRclone, setUpRclone } from '../config.ts';
import type { MountConfig } from '../config.ts';

/** The link in `<state_dir>/rclone/` that leads to the folder of the version in use. */
export const CHOSEN = 'chosen';
export const PROGRAM = 'rclone';

const OTHERS_WRITE = 0o022;
const VERSION = /^v\d+\.\d+\.\d+$/;

export function releasesFolder(stateDir: string): string {
  return join(stateDir, 'rclone');
}

/** Whether neither the file nor MOUNTKEEPER_RCLONE names the rclone to run. */
export function isUnnamed(rclone: string): boolean {
  return rclone === NO_NAME || rclone === setUpRclone();
}

/**
 * The rclone to run now: a name or a path. Looked up for each mount, so that a choice needs no change of the
 * configuration, which would mount every share anew. Throws a sentence where the choice cannot be read, or
 * somebody else could change the chosen one.
 */
export function rcloneToRun({ rclone }: Pick<MountConfig, 'rclone'>, stateDir: string): string {
  if (!isUnnamed(rclone)) return rclone;
  const version = chosenVersion(stateDir);
  return version === undefined ? rclone : safeProgram(version, stateDir);
}

/**
 * The path of that version, such as `v1.75.0`. Throws a sentence where it is not there, or somebody else could
 * change it.
 */
export function safeProgram(version: string, stateDir: string): string {
  // What is checked is what is run: no link on the way can be turned in between.
  const real = realpathSync(stateDir);
  const folder = join(releasesFolder(real), version);
  const program = join(folder, PROGRAM);
  for (const path of [real, releasesFolder(real), folder, program]) refuseForeign(path);
  return program;
}

/** What runs where nothing is chosen. */
export function systemRclone(rclone: string): string {
  return isUnnamed(rclone) ? defaultRclone() : rclone;
}

/** Such as `v1.75.0`; undefined where nothing is chosen. Throws a sentence where that cannot be known. */
export function chosenVersion(stateDir: string): string | undefined {
  const link = join(releasesFolder(stateDir), CHOSEN);
  const version = linkTarget(link);
  if (version === undefined || VERSION.test(version)) return version;
  throw new Error(
    `${link} leads to ${JSON.stringify(version)}, which is no version of rclone, so it is not run: ` +
      'run `mountkeeper rclone use VERSION`, or `use system`',
  );
}

function linkTarget(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`which rclone is chosen cannot be read: ${message}`, { cause: error });
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
