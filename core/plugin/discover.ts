/**
 * Discovery: plugins that come with the package, and third parties' in the folders of `[plugins] dirs`. A plugin that cannot be
 * used is found too, with the sentence that says what to mend.
 */
import { readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from '../api.ts';
import type { Logger } from '../services.ts';
import { contributionProblems } from '../config/schema.ts';
import { compareFound, entryOf } from './found.ts';
import type { BrokenPlugin, FoundPlugin, UsablePlugin } from './found.ts';
import { dryRun } from './instance.ts';
import { manifestProblem, pickPlugin, readPackage, thirdPartyProblem } from './manifest.ts';
import type { PackageManifest } from './manifest.ts';
import { sentence } from './members.ts';
import { preflight } from './preflight.ts';
import { prepareStage, stagePlugin } from './stage.ts';

export interface DiscoveryOptions {
  readonly inTree: string;
  readonly thirdPartyDirs: readonly string[];
  readonly stateDir: string;
  readonly log: Logger;
  /** Longest wait for a stranger's module to load. */
  readonly importMs: number;
}

/** Everything found, in-tree first, then by name. */
export async function discoverPlugins(options: DiscoveryOptions): Promise<readonly FoundPlugin[]> {
  const found = await discoverInTree(options);
  for (const dir of options.thirdPartyDirs) {
    const folders = await foldersOf(dir, options.log);
    // Whatever is in the way is said of each plugin that it is in the way of.
    if (folders.length > 0) await prepareStage(options.stateDir).catch(() => undefined);
    // At once: one that loops at its import must not hold up the others, nor the start of the daemon more than once.
    found.push(...(await Promise.all(folders.map((folder) => loadThirdParty(folder, options)))));
  }
  return refuseClashes(found).sort(compareFound);
}

/** One stranger's folder beside everything that comes with the package, as the daemon would find it. */
export async function examinePlugin(folder: string, options: DiscoveryOptions): Promise<FoundPlugin> {
  const one = await loadThirdParty(path.resolve(folder), options);
  const found = refuseClashes([...(await discoverInTree(options)), one]);
  return found.find((each) => each.thirdParty) ?? one;
}

async function discoverInTree({ inTree, log }: DiscoveryOptions): Promise<FoundPlugin[]> {
  const found: FoundPlugin[] = [];
  for (const folder of await foldersOf(inTree, log)) {
    if (await isThere(path.join(folder, 'index.js'))) found.push(await loadInTree(folder, log));
  }
  return found;
}

async function foldersOf(dir: string, log: Logger): Promise<string[]> {
  try {
    const names = (await readdir(dir)).filter((name) => !name.startsWith('.') && name !== 'node_modules').sort();
    const folders = names.map((name) => path.join(dir, name));
    const kinds = await Promise.all(folders.map((folder) => stat(folder).then((info) => info.isDirectory(), () => false)));
    return folders.filter((_, index) => kinds[index]);
  } catch (error) {
    log.warn({ dir, err: error }, 'plugin folder cannot be read; its plugins are missing');
    return [];
  }
}

function isThere(file: string): Promise<boolean> {
  return stat(file).then((info) => info.isFile(), () => false);
}

function broken(folder: string, problem: string, more: Partial<BrokenPlugin> & { thirdParty: boolean }): BrokenPlugin {
  return { name: path.basename(folder), version: '', description: '', folder, guard: !more.thirdParty, ...more, problem };
}

function usable(plugin: Plugin, folder: string, thirdParty: boolean, log: Logger): UsablePlugin {
  const { name, version, description } = plugin;
  return { name, version, description, folder, thirdParty, guard: plugin.guard === true, plugin, ledger: dryRun(plugin, log) };
}

async function importPlugin(entry: string, name: string): Promise<Plugin> {
  const value = pickPlugin((await import(pathToFileURL(entry).href)) as Record<string, unknown>);
  const problem = manifestProblem(value, name);
  if (problem !== undefined) throw new Error(problem);
  return value as Plugin;
}

async function loadInTree(folder: string, log: Logger): Promise<FoundPlugin> {
  try {
    return usable(await importPlugin(path.join(folder, 'index.js'), path.basename(folder)), folder, false, log);
  } catch (error) {
    return broken(folder, sentence(error), { thirdParty: false });
  }
}

async function loadThirdParty(folder: string, options: DiscoveryOptions): Promise<FoundPlugin> {
  let manifest: PackageManifest | undefined;
  try {
    manifest = await manifestOf(folder);
    const { plugin, stagedFolder } = await loadStaged(folder, manifest, options);
    return { ...usable(plugin, folder, true, options.log), stagedFolder };
  } catch (error) {
    const { version = '', description = '', guard = false } = manifest ?? {};
    return broken(folder, sentence(error), { thirdParty: true, version, description, guard });
  }
}

async function manifestOf(folder: string): Promise<PackageManifest> {
  const text = await readFile(path.join(folder, 'package.json'), 'utf8').catch((error: unknown) => {
    throw new Error(`${folder} has no readable package.json; add one, or take the folder out of the plugin folder`, { cause: error });
  });
  const manifest = readPackage(text);
  if (!(await isThere(path.join(folder, manifest.entry)))) {
    throw new Error(`its entry ${manifest.entry} does not exist; name the built .js or .mjs file as "exports" in package.json`);
  }
  return manifest;
}

/** Entries that passed once; a module that is loaded is not loaded again. */
const passed = new Set<string>();

async function loadStaged(folder: string, manifest: PackageManifest, options: DiscoveryOptions): Promise<{ plugin: Plugin; stagedFolder: string }> {
  const name = path.basename(folder);
  const staged = await stagePlugin(folder, name, options.stateDir);
  const entry = path.join(staged.folder, manifest.entry);
  if (!passed.has(entry)) {
    const problem = await preflight({ entry, name, guard: manifest.guard, timeoutMs: options.importMs });
    if (problem !== undefined) throw new Error(problem.replaceAll(staged.folder, folder));
    passed.add(entry);
    options.log.info({ plugin: name, hash: staged.hash, loaded: passed.size }, 'third-party plugin loaded');
  }
  const plugin = await importPlugin(entry, name);
  const problem = thirdPartyProblem(plugin, manifest.guard);
  if (problem !== undefined) throw new Error(problem);
  return { plugin, stagedFolder: staged.folder };
}

/** Of several plugins with one name, or with one configuration key, the first keeps it. In-tree plugins come first. */
function refuseClashes(found: readonly FoundPlugin[]): FoundPlugin[] {
  const kept = new Map<string, FoundPlugin>();
  const refused: FoundPlugin[] = [];
  for (const one of [...found].sort((a, b) => Number(a.thirdParty) - Number(b.thirdParty))) {
    const first = kept.get(one.name);
    if (first) refused.push(refuseName(one, first));
    else kept.set(one.name, one);
  }
  const problems = contributionProblems([...kept.values()].flatMap(entryOf));
  return [...[...kept.values()].map((one) => refuseKeys(one, problems.get(one.name))), ...refused];
}

function refuseName(one: FoundPlugin, first: FoundPlugin): BrokenPlugin {
  const holder = first.thirdParty ? `the plugin in ${first.folder}` : 'a plugin that comes with Mountkeeper';
  const { thirdParty, version, description } = one;
  return broken(one.folder, `the name "${one.name}" is taken by ${holder}; rename the folder and the plugin`, {
    name: `${one.name} (${path.dirname(one.folder)})`, thirdParty, version, description, guard: false,
  });
}

function refuseKeys(one: FoundPlugin, problem: string | undefined): FoundPlugin {
  if (problem === undefined) return one;
  const { name, version, description, thirdParty, guard, folder } = one;
  return broken(folder, `its configuration keys clash: ${problem}; give the key another name`, { name, version, description, thirdParty, guard });
}
