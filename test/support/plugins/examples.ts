/** The plugins in docs/examples, laid down as their authors and users have them. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT = fileURLToPath(new URL('../../../../', import.meta.url));
const FOLDER = path.join(PROJECT, 'docs/examples');

/** Names of all examples. */
export const EXAMPLES: readonly string[] = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

/** A file of an example, as it stands in the tree. */
export function exampleFile(name: string, file: string): string {
  return path.join(FOLDER, name, file);
}

/** Copies an example into `room`, with the packages that it names, as its users have it. Returns its folder. */
export function layExample(name: string, room: string): string {
  const folder = path.join(room, name);
  cpSync(path.join(FOLDER, name), folder, { recursive: true });
  const { dependencies = {} } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
    readonly dependencies?: object;
  };
  const packages = path.join(folder, 'node_modules');
  for (const one of Object.keys(dependencies))
    cpSync(path.join(PROJECT, 'node_modules', one), path.join(packages, one), { recursive: true });
  return folder;
}

/** As its author has it, after `npm install --save-dev` of Mountkeeper and the types of Node. */
export function layExampleForAuthor(name: string, room: string): string {
  const folder = layExample(name, room);
  const packages = path.join(folder, 'node_modules');
  mkdirSync(path.join(packages, '@types'), { recursive: true });
  symlinkSync(PROJECT, path.join(packages, 'mountkeeper'));
  symlinkSync(path.join(PROJECT, 'node_modules/@types/node'), path.join(packages, '@types/node'));
  return folder;
}
