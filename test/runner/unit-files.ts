/**
 * The unit tests share three processes that run side by side: which folders each of them brings together.
 * About as long as each other, and what asks the same of npm in the same one.
 */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const BUILT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../../test/', import.meta.url));

/** Names of test files → folders of unit tests, each with all that is below it. */
export const UNIT_FILES = {
  'unit/contract': ['contract', 'mutations', 'runner', 'tree', 'types'],
  'unit/daemon': ['api', 'config', 'core'],
  'unit/plugins': ['plugins'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/**
 * Which of them run what is declared in this file, source or built. All of them where it lies in none of the
 * folders, as the test kit does.
 */
export function unitFilesOf(declaredIn: string): readonly string[] {
  const room = /(?:^|\/dist\/)test\/([^/]+)\//.exec(declaredIn)?.[1] ?? '';
  const own = Object.entries(UNIT_FILES).filter(([, rooms]) => rooms.some((one) => one === room));
  return own.length === 0 ? Object.keys(UNIT_FILES) : own.map(([name]) => name);
}

/**
 * Imports the tests of its folders: that declares them. Rejects when there is none. The process goes on until the
 * last of them has ended: a test may wait for what keeps no process, as the daemon's own limits of time do, and Node
 * would end there and call all that follow cancelled.
 */
export async function bringTogether(name: keyof typeof UNIT_FILES): Promise<void> {
  const alive = setInterval(() => undefined, 60_000);
  after(() => clearInterval(alive));
  const files = (await Promise.all(UNIT_FILES[name].map(testFiles))).flat();
  if (files.length === 0) throw new Error('no unit tests found: build first');
  for (const file of files) await import(pathToFileURL(file).href);
}

async function testFiles(room: string): Promise<string[]> {
  const entries = await readdir(join(BUILT, room), { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.js'))
    .map((entry) => join(entry.parentPath, entry.name));
  // What an earlier build left of a test that is gone is no test.
  return files
    .filter((file) => existsSync(join(SOURCES, relative(BUILT, file).replace(/\.js$/, '.ts'))))
    .sort();
}
