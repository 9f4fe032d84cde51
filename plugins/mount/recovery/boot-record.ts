import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * There from the start of rclone until what it wrote is on the disk after its end. Tells during which boot of
 * the machine that was; by its own time, since when everything in the cache folder is on the disk.
 */
const BOOT_FILE = 'boot';
/** The kernel's own stamps lag behind the clock by some milliseconds. */
const STAMPS_LAG_MS = 100;

export interface BootNote {
  /** Empty when the power was cut before it was on the disk. */
  readonly bootId: string;
  /** What is older lies on the disk. */
  readonly onDiskUntilMs: number;
}

export async function readBootNote(cacheDir: string): Promise<BootNote | undefined> {
  const file = join(cacheDir, BOOT_FILE);
  const [text, found] = await Promise.all([
    readFile(file, 'utf8').catch(() => ''),
    stat(file).catch(() => undefined),
  ]);
  return found && { bootId: text.trim(), onDiskUntilMs: found.mtimeMs - STAMPS_LAG_MS };
}

/**
 * To be called before rclone works on the folder, and after what a former boot left has been seen to: all of
 * that is on the disk.
 */
export async function noteBoot(cacheDir: string): Promise<void> {
  const bootId = await bootIdNow();
  if ((await readBootNote(cacheDir))?.bootId !== bootId)
    await writeFile(join(cacheDir, BOOT_FILE), `${bootId}\n`, { mode: 0o600 });
}

/**
 * All that was written before `untilMs` is on the disk. Never rejects: a note that is too old makes nobody
 * trust too much.
 */
export async function noteOnDisk(cacheDir: string, untilMs: number): Promise<void> {
  await utimes(join(cacheDir, BOOT_FILE), untilMs / 1_000, untilMs / 1_000).catch(() => undefined);
}

/** Once rclone has ended and all of it is on the disk. */
export async function forgetBoot(cacheDir: string): Promise<void> {
  await rm(join(cacheDir, BOOT_FILE), { force: true });
}

export async function bootIdNow(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
