/**
 * Replaces the configuration file atomically: the old one stays intact until the new one is safely on the
 * disk.
 */
import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, open, readlink, rename, stat, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { syncFolder } from '../platform/files/atomic-file.ts';
import { undefinedWhenMissing } from '../platform/files/missing.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';

const MOST_LINKS = 40;

/**
 * Writes one file, one writer after the other. `before` is awaited when the writer's turn has come, and once more
 * when the new text is on the disk, right before it replaces the file; its rejection is the writer's.
 */
export function createFileWriter(
  file: string,
): (text: string, before?: () => Promise<void>) => Promise<void> {
  const queue = createSerialQueue();
  return (text, before) =>
    queue.run(async () => {
      await before?.();
      await replaceFile(file, text, before);
    });
}

/** What `before` rejected with is its cause. */
class Objection extends Error {}

/** Rejects with a plain sentence, or as `before` does. A symlink stays one; its target is replaced. */
export async function replaceFile(
  file: string,
  text: string,
  before: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  try {
    const target = await followLinks(file);
    await replace(target, text, { old: await existing(target), before });
  } catch (error) {
    if (error instanceof Objection) throw error.cause;
    throw new Error(`write ${file}: ${reason(error)}`, { cause: error });
  }
}

async function followLinks(file: string): Promise<string> {
  let target = resolve(file);
  for (let links = 0; links < MOST_LINKS; links += 1) {
    const stats = await lstat(target).catch(undefinedWhenMissing);
    if (stats?.isSymbolicLink() !== true) return target;
    target = resolve(dirname(target), await readlink(target));
  }
  throw new Error('too many symbolic links');
}

async function existing(target: string): Promise<Stats | undefined> {
  const stats = await stat(target).catch(undefinedWhenMissing);
  if (stats !== undefined && !stats.isFile()) throw new Error('it is not a plain file');
  return stats;
}

interface Replacing {
  readonly old: Stats | undefined;
  readonly before: () => Promise<void>;
}

async function replace(target: string, text: string, { old, before }: Replacing): Promise<void> {
  const folder = dirname(target);
  const temporary = join(folder, `.${basename(target).slice(0, 100)}.${randomBytes(8).toString('hex')}.tmp`);
  const handle = await open(temporary, 'wx', 0o600);
  try {
    try {
      await fill(handle, text, old);
    } finally {
      await handle.close();
    }
    // To have it on the disk may take seconds, in which somebody else may have saved the file.
    await before().catch((cause: unknown) => Promise.reject(new Objection('', { cause })));
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => {
      /* The first error is the one to report. */
    });
    throw error;
  }
  // The new file is in place: that its name may be lost with the power is no failure of the write.
  await syncFolder(folder).catch(() => undefined);
}

async function fill(handle: FileHandle, text: string, old: Stats | undefined): Promise<void> {
  await handle.writeFile(text, 'utf8');
  if (old !== undefined) {
    // Without the right to change owners, the new file belongs to this service; that gives nobody else
    // access.
    await handle.chown(old.uid, old.gid).catch(unprivileged);
    await handle.chmod(old.mode & 0o7777);
  }
  await handle.sync();
}

function unprivileged(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPERM') throw error;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the disk is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'its folder does not exist',
  EBUSY:
    'the file is a mount of its own, as when a single file is bound into a container; bind its folder instead',
  EFBIG: 'the file would be larger than this process may write',
};

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ''] ?? message;
}
