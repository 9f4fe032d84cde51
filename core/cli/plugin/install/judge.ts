/**
 * Whether a fetched package may become a plugin: what the daemon checks when it finds one, before the package
 * is where the daemon looks. First what its package.json says, then, once somebody has agreed to that, its code, which
 * is imported only of a plugin that is on already.
 */
import { access, lstat, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { enabledIn } from '../../../config/peek.ts';
import type { Peeked } from '../../../config/peek.ts';
import type { Permission } from '../../../contract/services.ts';
import { IN_TREE_PLUGINS } from '../../../platform/package.ts';
import { examinePlugin } from '../../../plugins/discovery/discover.ts';
import { entryOf } from '../../../plugins/discovery/found.ts';
import type { ContributionEntry, FoundPlugin } from '../../../plugins/discovery/found.ts';
import { NAME, readPackage } from '../../../plugins/discovery/manifest.ts';
import { pluginFiles } from '../../../plugins/discovery/plugin-files.ts';
import type { Fetched, Installed, PluginStore } from './store.ts';

const IMPORT_MS = 10_000;

/**
 * How the name of the folder begins in which the imported copy lies. The plugin's own user
 * (`runner/process/own-user.ts`) has to walk down to it, which it cannot in the state folder, nor in a temporary folder
 * that root has of its own.
 */
export const COPY_PREFIX = '/var/tmp/mountkeeper-check-';

export interface Surroundings {
  readonly peeked: Peeked;
  readonly store: Pick<PluginStore, 'has'>;
  /** Those of the store that can be read. */
  readonly installed: readonly Installed[];
}

/** What a package says of itself. */
export interface Claim {
  readonly name: string;
  readonly permissions: readonly Permission[];
}

/**
 * By its package.json, without running anything of it. Rejects with a sentence that names the package and what is
 * wrong with it.
 */
export function claimOf(fetched: Fetched, { peeked, store, installed }: Surroundings): Promise<Claim> {
  return naming(fetched, async () => {
    const text = await readFile(path.join(fetched.folder, 'package.json'), 'utf8');
    const name = pluginName(JSON.parse(text) as PackageJson, fetched.package);
    refuseOther(name, fetched, installed);
    if (!installed.some((one) => one.name === name) && (await store.has(name))) throw unreadable(name);
    await refuseDouble(name, peeked.pluginDirs);
    const { entry, permissions } = readPackage(text);
    await access(path.join(fetched.folder, entry)).catch((cause: unknown) => {
      throw new Error(`its entry ${entry} is not in the package`, { cause });
    });
    return { name, permissions };
  });
}

/**
 * What it declares of its keys. Runs the code of a plugin that is on, with the permissions of its claim: somebody must
 * have agreed to them. Nobody else can write the fetched package meanwhile. Rejects as `claimOf`.
 */
export function examinePackage(
  { name }: Claim,
  fetched: Fetched,
  peeked: Peeked,
): Promise<ContributionEntry | undefined> {
  return naming(fetched, async () => {
    const found = await examine(name, fetched, peeked);
    for await (const _ of pluginFiles(fetched.folder));
    return entryOf(found)[0];
  });
}

async function naming<T>({ package: name, version }: Fetched, judge: () => Promise<T>): Promise<T> {
  try {
    return await judge();
  } catch (error) {
    throw new Error(`${name}@${version} is not installed: ${(error as Error).message}`, { cause: error });
  }
}

interface PackageJson {
  readonly mountkeeper?: { readonly name?: unknown };
}

/** `mountkeeper.name` of its package.json, else the package's own without scope and `mountkeeper-plugin-`. */
export function pluginName({ mountkeeper }: PackageJson, packageName: string): string {
  if (typeof mountkeeper !== 'object' || mountkeeper === null)
    throw new Error(
      'it is no plugin for Mountkeeper; a plugin\'s package.json has "mountkeeper": { "apiVersion": 1 }',
    );
  const said = mountkeeper.name ?? packageName.replace(/^@[^/]+\//, '').replace(/^mountkeeper-plugin-/, '');
  if (typeof said === 'string' && NAME.test(said)) return said;
  throw new Error(
    `${JSON.stringify(said)} cannot be the name of a plugin; its author names it in package.json: ` +
      '"mountkeeper": { "name": "…" }, small letters, digits and single hyphens',
  );
}

function refuseOther(name: string, fetched: Fetched, installed: readonly Installed[]): void {
  const former = installed.find((one) => one.name === name);
  if (former === undefined || former.package === fetched.package) return;
  throw new Error(
    `the plugin "${name}" is installed already, from the package ${former.package}; ` +
      `remove it first: mountkeeper plugin remove ${name}`,
  );
}

/** Whose package it is cannot be told, so this one may be somebody else's. */
function unreadable(name: string): Error {
  return new Error(
    `what is installed as "${name}" cannot be read; remove it first: mountkeeper plugin remove ${name} --force`,
  );
}

async function refuseDouble(name: string, dirs: readonly string[]): Promise<void> {
  for (const dir of dirs) {
    const folder = path.join(dir, name);
    const isThere = await lstat(folder).then(
      () => true,
      () => false,
    );
    if (isThere)
      throw new Error(`a plugin "${name}" is in ${folder} already, where [plugins] dirs leads; take it away`);
  }
}

async function examine(name: string, fetched: Fetched, peeked: Peeked): Promise<FoundPlugin> {
  const room = await mkdtemp(COPY_PREFIX);
  try {
    // Discovery takes the name of the folder for that of the plugin.
    const folder = path.join(room, name);
    await symlink(fetched.folder, folder);
    const found = await examinePlugin(folder, peeked.isolation.get(name) ?? 'own', {
      inTree: IN_TREE_PLUGINS,
      thirdPartyDirs: [],
      stateDir: room,
      enabled: enabledIn(peeked),
      log: pino({ level: 'silent' }),
      importMs: IMPORT_MS,
    });
    const { problem } = found;
    if (problem !== undefined) throw new Error(problem.replaceAll(folder, 'the package') + adviceOn(problem));
    return found;
  } finally {
    await rm(room, { recursive: true, force: true, maxRetries: 5 });
  }
}

function adviceOn(problem: string): string {
  return /but its folder is called/.test(problem)
    ? ' (the folder is called after the package, or "mountkeeper": { "name": "…" } in its package.json)'
    : '';
}
