/** Access of other users to the folders of a test run, which only its own user may enter. */
import { chmod, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Lets other users pass through a folder and those above it, which a test run keeps to itself. */
export async function letOthersEnter(folder: string): Promise<void> {
  for (let at = folder; at !== '/'; at = dirname(at)) {
    const { mode } = await stat(at);
    if ((mode & 0o005) !== 0o005) await chmod(at, (mode & 0o7777) | 0o055);
  }
}
