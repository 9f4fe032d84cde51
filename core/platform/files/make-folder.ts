/**
 * A folder with all above it. Node's own way never comes back where the kernel lets nothing be made, as in
 * /proc.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const MODE = 0o700;

/** Made for the daemon's user alone; what is there stays as it is. */
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
