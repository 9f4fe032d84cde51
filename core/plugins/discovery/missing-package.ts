/** A plugin that imports what is not in its `node_modules`: which package, and what is to be done about it. */
import path from 'node:path';
import { readTrusted } from '../../platform/files/ownership.ts';
import { installedFolder } from './installed.ts';
import { isOfHost } from './manifest.ts';

const MOST_BYTES = 1_048_576;
/** As Node says it, of an import or a require. */
const MISSING = /Cannot find (?:package|module) \x27([^\x27\s]{1,1000})\x27/;
/** Of a require it lists the files that led there, the one that requires first. */
const IMPORTER = /(?:imported from |Require stack:\s+- )([^\n]{1,4096})/;
const MODULES = '/node_modules/';

/** Parts of a package.json that name packages. */
const PARTS = ['dependencies', 'peerDependencies', 'optionalDependencies', 'devDependencies'] as const;
/** Where it names the package; `unknown`: it cannot be read, or it is another's to name it. */
type Part = (typeof PARTS)[number] | 'none' | 'unknown';

const ANOTHER = 'tell its author, or install another version';
const AGAIN = 'is not in its node_modules though its package.json asks for it; install the plugin again';
/** Of a plugin that was installed by Mountkeeper, whose folder is nobody's to change. */
const INSTALLED: Readonly<Record<Part, string>> = {
  dependencies: AGAIN,
  peerDependencies: AGAIN,
  optionalDependencies: `stands under optionalDependencies and could not be installed; ${ANOTHER}`,
  devDependencies: `stands under devDependencies, which are not installed with it; ${ANOTHER}`,
  none: `was not installed with it, since its package.json does not ask for it; ${ANOTHER}`,
  unknown: `was not installed with it; ${ANOTHER}`,
};
const OF_HOST = "a plugin has from Mountkeeper alone; import Joi and Boom from 'mountkeeper'";

interface Place {
  readonly folder: string;
  readonly stateDir: string;
}

/** Of a package, or of a file in it; undefined for a path. */
function packageIn(specifier: string): string | undefined {
  const [first = '', second = ''] = specifier.split('/');
  if (first === '' || first.startsWith('.')) return undefined;
  return first.startsWith('@') ? `${first}/${second}` : first;
}

/** Undefined where the reason why the plugin in `folder` cannot be loaded is another one. */
export async function missingPackage(reason: string, place: Place): Promise<string | undefined> {
  const name = packageIn(MISSING.exec(reason)?.[1] ?? '');
  if (name === undefined) return undefined;
  const importer = IMPORTER.exec(reason)?.[1];
  const at = importer?.lastIndexOf(MODULES) ?? -1;
  const by = at === -1 ? undefined : packageIn(importer?.slice(at + MODULES.length) ?? '');
  return `${whoImports(importer, by)} the package "${name}", which ${await whatToDo(name, by, place)}`;
}

function whoImports(importer: string | undefined, by: string | undefined): string {
  if (importer === undefined) return 'it, or a package of it, imports';
  return by === undefined ? 'it imports' : `its package "${by}" imports`;
}

async function whatToDo(name: string, by: string | undefined, { folder, stateDir }: Place): Promise<string> {
  if (by === undefined && isOfHost(name)) return OF_HOST;
  const part = await partThatNames(name, folder);
  if (path.dirname(folder) === installedFolder(stateDir))
    return INSTALLED[by !== undefined && part === 'none' ? 'unknown' : part];
  if (part === 'devDependencies')
    return (
      'stands under devDependencies, which the daemon leaves out; ' +
      `move it to dependencies in package.json, and run 'npm install' in ${folder}`
    );
  return part === 'none' || part === 'unknown'
    ? `is not in its node_modules; run 'npm install ${name}' in ${folder}`
    : `is not in its node_modules; run 'npm install' in ${folder}`;
}

async function partThatNames(name: string, folder: string): Promise<Part> {
  try {
    const text = await readTrusted(path.join(folder, 'package.json'), MOST_BYTES);
    const json = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return PARTS.find((part) => isIn(json[part], name)) ?? 'none';
  } catch {
    // It has changed since the plugin was loaded.
    return 'unknown';
  }
}

function isIn(names: unknown, name: string): boolean {
  return typeof names === 'object' && names !== null && Object.hasOwn(names, name);
}
