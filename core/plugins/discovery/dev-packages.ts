/** Packages that an author installed to develop a plugin: the daemon neither checks nor copies them. */
import path from 'node:path';
import { readTrusted } from '../../platform/files/ownership.ts';

const MOST_BYTES = 1_048_576;
/** More than any plugin needs; ends a search that somebody made endless on purpose. */
const MOST_PACKAGES = 20_000;

type Names = Readonly<Record<string, unknown>>;
interface Package {
  readonly dependencies?: Names;
  readonly devDependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
}

/**
 * Names of packages in the plugin's `node_modules` that are there only for its `devDependencies`. A package
 * that no package.json mentions is kept: somebody may have put it there by hand. An unreadable package
 * counts as having no dependencies.
 */
export async function devPackages(folder: string): Promise<ReadonlySet<string>> {
  const modules = path.join(folder, 'node_modules');
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = await read(folder);
  const dev = await reachable(modules, Object.keys(devDependencies ?? {}));
  if (dev.size === 0) return dev;
  const wanted = await reachable(
    modules,
    Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }),
  );
  return new Set([...dev].filter((name) => !wanted.has(name)));
}

/**
 * Ignores nested `node_modules`: a nested package belongs to the one that contains it, and all other
 * dependencies are at the top.
 */
async function reachable(modules: string, names: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set(names);
  for (const name of found) {
    if (found.size > MOST_PACKAGES || !isName(name)) continue;
    const { dependencies, optionalDependencies, peerDependencies } = await read(path.join(modules, name));
    for (const needed of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
      found.add(needed);
  }
  return found;
}

/** False for names that are paths in disguise. */
function isName(name: string): boolean {
  return /^(?:@[\w.~-]+\/)?[\w~-][\w.~-]*$/.test(name);
}

async function read(folder: string): Promise<Package> {
  try {
    return JSON.parse(await readTrusted(path.join(folder, 'package.json'), MOST_BYTES)) as Package;
  } catch {
    // No package of a plugin: discovery says what is wrong with those that are named.
    return {};
  }
}
