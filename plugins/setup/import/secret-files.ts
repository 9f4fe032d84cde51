/** Files that hold one secret each, in a folder beside the configuration. */
import { lstat, mkdir, open, rm, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder, refuseForeignPlace } from 'mountkeeper';

export interface SecretFile {
  /** Absolute; all of them lie in one folder. */
  readonly path: string;
  /** In clear. */
  readonly value: string;
}

/** Takes away what was written, and the folder where it was made for it. Never rejects. */
export type Undo = () => Promise<void>;

/**
 * Resolves when all of them are on the disk, and rejects with none of them there. A folder that others could
 * change or lead elsewhere is refused before anything is written; what is at a path already is neither followed
 * nor filled nor removed. They belong to the user of this process and are given to nobody.
 */
export async function writeSecrets(files: readonly SecretFile[]): Promise<Undo> {
  const [first] = files;
  if (!first) return () => Promise.resolve();
  const folder = dirname(first.path);
  await refuseForeignPlace(folder);
  await makeFolder(dirname(folder));
  const isNew = await isMadeHere(folder);
  const written: string[] = [];
  const undo = async (): Promise<void> => {
    await Promise.allSettled(written.map((path) => rm(path, { force: true })));
    // Where it is not empty, somebody else keeps something there by now.
    if (isNew) await rmdir(folder).catch(() => undefined);
  };
  try {
    for (const { path, value } of files) {
      const handle = await open(path, 'wx', 0o600);
      // It is there from now on, whatever becomes of its content.
      written.push(path);
      try {
        await handle.writeFile(`${value}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
    return undo;
  } catch (error) {
    await undo();
    throw error;
  }
}

/** A folder that is there already must be one itself: what a link leads to is not beside the configuration. */
async function isMadeHere(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (!(await lstat(folder)).isDirectory()) throw new Error(`${folder} is no folder`, { cause: error });
    return false;
  }
}
