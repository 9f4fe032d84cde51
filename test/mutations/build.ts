/** A copy of the build in which something can be broken; the working tree and its build stay as they are. */
import { cp, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from '../runner/test-files.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import type { Mutation } from './list.ts';

const builtOf = (source: string): string => `dist/${source.replace(/\.ts$/, '.js')}`;

export const testOf = ({ test }: Mutation): string => `dist/test/${test}.test.js`;

/**
 * The built file's text with the break in it. Rejects with a sentence when what is to be broken does not
 * stand there once.
 */
export async function broken(
  { fault, file, from, to }: Mutation,
  folder = PROJECT,
): Promise<{ readonly path: string; readonly whole: string; readonly text: string }> {
  const path = join(folder, builtOf(file));
  const whole = await readFile(path, 'utf8');
  const times = whole.split(from).length - 1;
  if (times !== 1)
    throw new Error(
      `'${fault}': '${from}' stands ${times} times in ${builtOf(file)} and must stand ` +
        'there once; mend test/mutations/list.ts',
    );
  return { path, whole, text: whole.replace(from, () => to) };
}

/** Breaks the copy for as long as the work takes. */
export async function whileBroken<T>(folder: string, mutation: Mutation, work: () => Promise<T>): Promise<T> {
  const { path, whole, text } = await broken(mutation, folder);
  await writeFile(path, text);
  try {
    return await work();
  } finally {
    await writeFile(path, whole);
  }
}

/** Everything but the build is the project's own. */
export async function copyOfBuild(scratch: Scratch): Promise<string> {
  const folder = scratch.path('copy');
  await cp(join(PROJECT, 'dist'), join(folder, 'dist'), { recursive: true });
  const others = (await readdir(PROJECT)).filter((name) => name !== 'dist' && name !== '.git');
  for (const name of others) await symlink(join(PROJECT, name), join(folder, name));
  return folder;
}
