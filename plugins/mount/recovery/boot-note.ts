import { readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing, writeWhole } from 'mountkeeper';

/**
 * This file exists from the start of rclone until everything it wrote is on the disk after its end. Its
 * text says in which boot of the machine that was; its modification time says until when everything written
 * to the cache folder is known to be on the disk.
 */
const BOOT_FILE = 'boot';
/** The kernel's timestamps lag some milliseconds behind the clock. */
const STAMPS_LAG_MS = 100;

export interface BootNote {
  /** Empty when the power was cut before the text was on the disk. */
  readonly bootId: string;
  /** Everything older is on the disk. */
  readonly onDiskUntilMs: number;
}

export async function readBootNote(cacheDir: string): Promise<BootNote | undefined> {
  const file = join(cacheDir, BOOT_FILE);
  const [text, found] = await Promise.all([
    // As one of another boot: then the cache is looked through.
    readFile(file, 'utf8').catch(() => ''),
    stat(file).catch(undefinedWhenMissing),
  ]);
  return (
    found && {
      bootId: text.trim(),
      onDiskUntilMs: found.mtimeMs - STAMPS_LAG_MS,
    }
  );
}

/**
 * Call it before anybody uses the folder, and after handling what a former boot left: all of that is on the
 * disk. The note itself is there for good when it resolves: without it nothing would be looked at.
 */
export async function noteBoot(cacheDir: string): Promise<void> {
  const bootId = await bootIdNow();
  if ((await readBootNote(cacheDir))?.bootId !== bootId)
    await writeWhole(join(cacheDir, BOOT_FILE), `${bootId}\n`);
}

/**
 * Records that everything written before `untilMs` is on the disk. Never rejects: an older time is only
 * more careful.
 */
export async function noteOnDisk(cacheDir: string, untilMs: number): Promise<void> {
  // Its former time stays, and more is taken for lost after a power cut.
  await utimes(join(cacheDir, BOOT_FILE), untilMs / 1_000, untilMs / 1_000).catch(() => undefined);
}

/**
 * The clock may have been set back: what is written from now on would seem older than what is noted. Never rejects.
 */
export async function noteNotLater(cacheDir: string, nowMs: number): Promise<void> {
  // The next round tries again.
  const found = await stat(join(cacheDir, BOOT_FILE)).catch(() => undefined);
  if (found !== undefined && found.mtimeMs > nowMs + STAMPS_LAG_MS) await noteOnDisk(cacheDir, nowMs);
}

/** Call it once rclone has ended and everything is on the disk. */
export async function forgetBoot(cacheDir: string): Promise<void> {
  await rm(join(cacheDir, BOOT_FILE), { force: true });
}

export async function bootIdNow(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
