/**
 * Where `mountkeeper plugin install` puts plugins. `<state>/installed-plugins/` is always searched. Each plugin
 * in it is a link to its package below `.packages`, so that one rename replaces it as a whole.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';

/** Projects of npm, one for each plugin; neither searched nor watched. */
export const PACKAGES = '.packages';

/** Rewritten after each change, so that a watcher hears of it even where it misses that a link has moved. */
export const CHANGED = '.changed';

export function installedFolder(stateDir: string): string {
  return path.join(stateDir, 'installed-plugins');
}

/** Names of what is installed, sorted; none where the folder is missing or may not be read. */
export async function installedNames(stateDir: string): Promise<readonly string[]> {
  // Most machines have none, and the command line of an ordinary user sees none.
  const names = await readdir(installedFolder(stateDir)).catch(() => []);
  return names.filter((name) => !name.startsWith('.')).sort();
}

/** The folders in which plugins are looked for: those of `[plugins] dirs` first. */
export async function searchedFolders(dirs: readonly string[], stateDir: string): Promise<readonly string[]> {
  const installed = (await installedNames(stateDir)).length > 0 ? [installedFolder(stateDir)] : [];
  return [...new Set([...dirs, ...installed])];
}
