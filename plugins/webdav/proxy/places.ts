/**
 * The folders that the daemon has opened for this process. It runs as a user who may not walk down to them: not
 * through the state folder, nor through the cache's.
 */
import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** See `ProcessSpec.folders`. */
const FIRST = 4;
const opened = new Map<string, string>();

/** In the order in which they were opened. Throws where one was not. */
export function takePlaces(folders: readonly string[]): void {
  for (const [index, folder] of folders.entries()) {
    const place = `/proc/self/fd/${FIRST + index}`;
    if (!statSync(place).isDirectory()) throw new Error(`${folder} was not opened for this process`);
    opened.set(folder, place);
  }
}

/**
 * Whether a file lies in a folder that was opened for this process; true where none was. A proxy that is root takes
 * notes from one that was not, and perhaps was broken into: it reads and removes nothing else on their word.
 */
export function isGiven(file: string): boolean {
  return opened.size === 0 || opened.has(dirname(file));
}

/** How this process reaches a folder, or what lies in it; the path itself where it was not opened. */
export function at(path: string): string {
  const whole = opened.get(path);
  if (whole !== undefined) return whole;
  const folder = opened.get(dirname(path));
  return folder === undefined ? path : `${folder}/${basename(path)}`;
}
