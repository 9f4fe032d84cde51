/** A plugin that imports what is not in its `node_modules`: which package, and what is to be done about it. */
import path from 'node:path';
import { readTrusted } from '../../platform/files/ownership.ts';
import { installedFolder } from './installed.ts';

const MOST_BYTES = 1_048_576;
/** As Node says it, of an import or a require. */
const MISSING = /Cannot find (?:package|module) \x27([^\x27\s]{1,1000})\x27/;
const IMPORTER = /imported from (\S{1,4096})/;
const MODULES = '/node_modules/';

/** Of a package, or of a file in it; undefined for a path. */
function packageIn(specifier: string): string | undefined {
  const [first = '', second = ''] = specifier.split('/');
  if (first === '' || first.startsWith('.')) return undefined;
  return first.startsWith('@') ? `${first}/${second}` : first;
}

/** Undefined where the reason why the plugin in `folder` cannot be loaded is another one. */
export async function missingPackage(
  reason: string,
  { folder, stateDir }: { readonly folder: string; readonly stateDir: string },
): Promise<string | undefined> {
  const name = packageIn(MISSING.exec(reason)?.[1] ?? '');
  if (name === undefined) return undefined;
  const importer = IMPORTER.exec(reason)?.[1] ?? '';
  const at = importer.lastIndexOf(MODULES);
  const by = at === -1 ? undefined : packageIn(importer.slice(at + MODULES.length));
  const who = by === undefined ? 'it imports' : `its package "${by}" imports`;
  return `${who} the package "${name}", which ${await whatToDo(name, folder, stateDir)}`;
}

async function whatToDo(name: string, folder: string, stateDir: string): Promise<string> {
  if (path.dirname(folder) === installedFolder(stateDir))
    return (
      'was not installed with it, since its package.json does not ask for it; ' +
      'tell its author, or install another version'
    );
  const { dependencies, devDependencies } = await read(folder);
  if (isIn(dependencies, name)) return `is not in its node_modules; run 'npm install' in ${folder}`;
  if (isIn(devDependencies, name))
    return (
      'stands under devDependencies, which the daemon leaves out; ' +
      `move it to dependencies in package.json, and run 'npm install' in ${folder}`
    );
  return `is not in its node_modules; run 'npm install ${name}' in ${folder}`;
}

function isIn(names: unknown, name: string): boolean {
  return typeof names === 'object' && names !== null && Object.hasOwn(names, name);
}

/** What can be read of its package.json. */
async function read(folder: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const json: unknown = JSON.parse(await readTrusted(path.join(folder, 'package.json'), MOST_BYTES));
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : {};
  } catch {
    // It has changed since the plugin was loaded.
    return {};
  }
}
