// @start 4
/**
 * Brings all unit tests into one process: importing a file declares its tests. Run by the test runner as one
 * test file.
 */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const BUILT = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../test/', import.meta.url));
/** Folders of unit tests, each with all that is below it. */
const ROOMS = ['api', 'config', 'contract', 'core', 'mutations', 'plugins', 'runner', 'tree', 'types'];

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

const files = (await Promise.all(ROOMS.map(testFiles))).flat();
if (files.length === 0) throw new Error('no unit tests found: build first');
for (const file of files) await import(pathToFileURL(file).href);
