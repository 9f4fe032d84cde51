/**
 * Discovery: plugins that come with the package, and third parties' in the folders of `[plugins] dirs`. Of
 * the latter, only those that are switched on are imported, and only from where nobody but root and the
 * daemon's user can write. A plugin that cannot be used is found too, with the sentence that says what to
 * mend.
 */
import { lstat, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Plugin } from '../../contract/plugin.ts';
import type { Logger } from '../../contract/platform.ts';
import { contributionProblems } from '../../config/schema/schema.ts';
import { compareFound, dormantContribution, entryOf } from './found.ts';
import type { BrokenPlugin, DormantPlugin, FoundPlugin, UsablePlugin } from './found.ts';
import { dryRun } from '../instance/instance.ts';
import { manifestProblem, pickPlugin, readPackage, thirdPartyProblem } from './manifest.ts';
import type { PackageManifest } from './manifest.ts';
import { sentence } from '../members.ts';
import { importModule, loadModule } from '../../platform/load-module.ts';
import {
  judgeContent,
  judgePassage,
  readTrusted,
  resolveTrusted,
  Untrusted,
} from '../../platform/files/ownership.ts';
import { preflight } from './preflight.ts';
import { prepareStage, stagePlugin } from './stage.ts';

const NONE: ReadonlySet<string> = new Set();
/** In one folder of plugins: where everybody may make folders, their number is nobody's. */
const MOST_FOLDERS = 200;
const MOST_MANIFEST_BYTES = 1_048_576;

export interface DiscoveryOptions {
  readonly inTree: string;
  readonly thirdPartyDirs: readonly string[];
  /**
   * Names that the configuration switches on. No other plugin of a third party is imported; default: none is.
   */
  readonly enabled?: ReadonlySet<string>;
  readonly stateDir: string;
  /** The sentence why no plugin of a third party is imported, also of those that are switched on. */
  readonly strangersOff?: string;
  readonly log: Logger;
  /** Longest wait for a stranger's module to load. */
  readonly importMs: number;
}

/** Everything found, in-tree first, then by name. */
export async function discoverPlugins(options: DiscoveryOptions): Promise<readonly FoundPlugin[]> {
  const found = await discoverInTree(options);
  const refusedDirs: BrokenPlugin[] = [];
  for (const dir of options.thirdPartyDirs) {
    const problem = await dirProblem(dir);
    if (problem !== undefined) refusedDirs.push(refusedDir(dir, problem, options.log));
    else found.push(...(await discoverThirdParties(dir, options)));
  }
  return [...refuseClashes(found), ...refusedDirs, ...hiddenBy(refusedDirs[0], found, options)].sort(
    compareFound,
  );
}

async function discoverThirdParties(dir: string, options: DiscoveryOptions): Promise<readonly FoundPlugin[]> {
  const { enabled = NONE, log, stateDir } = options;
  const names = await namesIn(dir, log);
  const wanted = names.filter((name) => enabled.has(name));
  const others = names.filter((name) => !enabled.has(name));
  if (names.length > MOST_FOLDERS)
    log.warn(
      { dir, folders: names.length, most: MOST_FOLDERS },
      'too many folders for plugins; not all are looked at',
    );
  // Whatever is in the way is said of each plugin that it is in the way of.
  if (wanted.length > 0) await prepareStage(stateDir).catch(() => undefined);
  // At once: one that loops at its import must not hold up the others, nor the start of the daemon more than
  // once.
  const found = await Promise.all(
    [...wanted, ...others]
      .slice(0, MOST_FOLDERS)
      .map((name) => loadThirdParty(path.join(dir, name), options)),
  );
  return found.filter((one) => one !== undefined);
}

/** Why nothing in a folder of plugins can be trusted, before anything in it is looked at. */
async function dirProblem(dir: string): Promise<string | undefined> {
  try {
    const real = await resolveTrusted(dir);
    judgePassage(real, await lstat(real));
    return undefined;
  } catch (error) {
    return error instanceof Untrusted ? error.message : undefined;
  }
}

function refusedDir(dir: string, problem: string, log: Logger): BrokenPlugin {
  log.error({ dir, reason: problem }, 'folder of plugins refused');
  return broken(dir, problem, { name: dir, thirdParty: true, isWholeFolder: true });
}

/**
 * Plugins that are switched on, not to be found elsewhere and so in a refused folder: each may be a guard.
 */
function hiddenBy(
  dir: BrokenPlugin | undefined,
  found: readonly FoundPlugin[],
  { enabled = NONE }: DiscoveryOptions,
): BrokenPlugin[] {
  if (!dir) return [];
  const missing = [...enabled].filter((name) => !found.some((one) => one.name === name));
  return missing.map((name) =>
    broken(path.join(dir.folder, name), dir.problem, { thirdParty: true, guard: true }),
  );
}

/** One stranger's folder beside everything that comes with the package, as the daemon would find it. */
export async function examinePlugin(folder: string, options: DiscoveryOptions): Promise<FoundPlugin> {
  const at = path.resolve(folder);
  const one =
    (await loadThirdParty(at, { ...options, enabled: new Set([path.basename(at)]) })) ??
    broken(at, 'it is no folder', { thirdParty: true });
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
  const folders = (await namesIn(dir, log)).map((name) => path.join(dir, name));
  const kinds = await Promise.all(
    folders.map((folder) =>
      stat(folder).then(
        (info) => info.isDirectory(),
        () => false,
      ),
    ),
  );
  return folders.filter((_, index) => kinds[index]);
}

async function namesIn(dir: string, log: Logger): Promise<string[]> {
  try {
    return (await readdir(dir)).filter((name) => !name.startsWith('.') && name !== 'node_modules').sort();
  } catch (error) {
    log.warn({ dir, err: error }, 'plugin folder cannot be read; its plugins are missing');
    return [];
  }
}

function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    (info) => info.isFile(),
    () => false,
  );
}

function broken(
  folder: string,
  problem: string,
  more: Partial<BrokenPlugin> & { thirdParty: boolean },
): BrokenPlugin {
  return {
    name: path.basename(folder),
    version: '',
    description: '',
    folder,
    guard: !more.thirdParty,
    ...more,
    problem,
  };
}

function usable(plugin: Plugin, folder: string, thirdParty: boolean, log: Logger): UsablePlugin {
  const { name, version, description } = plugin;
  return {
    name,
    version,
    description,
    folder,
    thirdParty,
    guard: plugin.guard === true,
    plugin,
    ledger: dryRun(plugin, log),
  };
}

function checkedPlugin(module: Record<string, unknown>, name: string): Plugin {
  const value = pickPlugin(module);
  const problem = manifestProblem(value, name);
  if (problem !== undefined) throw new Error(problem);
  return value as Plugin;
}

async function loadInTree(folder: string, log: Logger): Promise<FoundPlugin> {
  try {
    const entry = path.join(folder, 'index.js');
    return usable(checkedPlugin(await loadModule(entry), path.basename(folder)), folder, false, log);
  } catch (error) {
    return broken(folder, sentence(error), { thirdParty: false });
  }
}

/** Undefined for what is no folder. */
async function loadThirdParty(folder: string, options: DiscoveryOptions): Promise<FoundPlugin | undefined> {
  const name = path.basename(folder);
  const isEnabled = options.enabled?.has(name) === true;
  let manifest: PackageManifest | undefined;
  try {
    if (!(await mayBeFolder(folder))) return undefined;
    const real = await resolveTrusted(folder);
    const stats = await lstat(real);
    if (!stats.isDirectory()) return undefined;
    judgeContent(real, stats, real);
    manifest = await manifestOf(real, folder);
    if (!isEnabled) return dormant(folder, manifest);
    if (options.strangersOff !== undefined) throw new Error(options.strangersOff);
    const { plugin, stagedFolder } = await loadStaged(folder, manifest, options);
    return { ...usable(plugin, folder, true, options.log), stagedFolder };
  } catch (error) {
    // What others can write cannot say that it is no guard.
    const mayBeGuard = isEnabled && error instanceof Untrusted;
    return refused(folder, error, mayBeGuard ? { ...manifest, guard: true } : manifest);
  }
}

function dormant(
  folder: string,
  { version, description, guard, ...declared }: PackageManifest,
): DormantPlugin {
  const name = path.basename(folder);
  const contribution = dormantContribution({ guard, ...declared });
  return { name, version, description, folder, thirdParty: true, guard, contribution };
}

function refused(folder: string, error: unknown, known: Partial<PackageManifest> = {}): BrokenPlugin {
  const { version = '', description = '', guard = false } = known;
  return broken(folder, sentence(error), { thirdParty: true, version, description, guard });
}

/** A link is not followed: it may lead anywhere. */
async function mayBeFolder(file: string): Promise<boolean> {
  return lstat(file).then(
    (stats) => stats.isDirectory() || stats.isSymbolicLink(),
    () => false,
  );
}

async function manifestOf(real: string, folder: string): Promise<PackageManifest> {
  const text = await readTrusted(path.join(real, 'package.json'), MOST_MANIFEST_BYTES).catch(
    (error: unknown) => {
      if (error instanceof Untrusted) throw error;
      throw new Error(
        `${folder} has no readable package.json; add one, or take the folder out of the plugin folder`,
        { cause: error },
      );
    },
  );
  return readPackage(text);
}

/** Entries that passed once; a module that is loaded is not loaded again. */
const passed = new Set<string>();

async function loadStaged(
  folder: string,
  manifest: PackageManifest,
  options: DiscoveryOptions,
): Promise<{ plugin: Plugin; stagedFolder: string }> {
  const name = path.basename(folder);
  const staged = await stagePlugin(folder, name, options.stateDir);
  const entry = path.join(staged.folder, manifest.entry);
  if (!(await isThere(entry))) {
    throw new Error(
      `its entry ${manifest.entry} does not exist; name the built .js or .mjs file as "exports" in package.json`,
    );
  }
  if (!passed.has(entry)) {
    const problem = await preflight({ entry, name, declared: manifest, timeoutMs: options.importMs });
    if (problem !== undefined) throw new Error(problem.replaceAll(staged.folder, folder));
    passed.add(entry);
    options.log.info({ plugin: name, hash: staged.hash, loaded: passed.size }, 'third-party plugin loaded');
  }
  const plugin = checkedPlugin(await importModule(entry), name);
  const problem = thirdPartyProblem(plugin, manifest);
  if (problem !== undefined) throw new Error(problem);
  return { plugin, stagedFolder: staged.folder };
}

/**
 * Of several plugins with one name, or with one configuration key, the first keeps it. In-tree plugins come
 * first, broken ones last.
 */
function refuseClashes(found: readonly FoundPlugin[]): FoundPlugin[] {
  const kept = new Map<string, FoundPlugin>();
  const refused: FoundPlugin[] = [];
  const isBroken = (one: FoundPlugin): boolean => one.thirdParty && one.problem !== undefined;
  for (const one of [...found].sort(
    (a, b) => Number(a.thirdParty) - Number(b.thirdParty) || Number(isBroken(a)) - Number(isBroken(b)),
  )) {
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
  return broken(
    one.folder,
    `the name "${one.name}" is taken by ${holder}; rename the folder and the plugin`,
    {
      name: `${one.name} (${path.dirname(one.folder)})`,
      thirdParty,
      version,
      description,
      guard: false,
    },
  );
}

function refuseKeys(one: FoundPlugin, problem: string | undefined): FoundPlugin {
  if (problem === undefined) return one;
  const { name, version, description, thirdParty, guard, folder } = one;
  return broken(folder, `its configuration keys clash: ${problem}; give the key another name`, {
    name,
    version,
    description,
    thirdParty,
    guard,
  });
}
