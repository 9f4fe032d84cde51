/**
 * Creates a folder with its parents. Node's own recursive mkdir never returns where the kernel refuses
 * every folder, as in /proc.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const MODE = 0o700;

/** New folders have mode 0700; existing ones stay as they are. */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: MODE });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(path) !== path) await makeBelow(path);
    else if (!(await isFolder(path))) throw error;
  }
}

async function makeBelow(path: string): Promise<void> {
  await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: MODE });
  } catch (error) {
    if (!(await isFolder(path))) throw error;
  }
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
