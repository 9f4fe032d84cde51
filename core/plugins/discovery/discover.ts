/**
 * Discovery: in-tree plugins, third-party plugins in the folders of `[plugins] dirs`, and installed ones.
 * Third-party plugins are imported only when they are switched on, and only from places where nobody but root and the
 * daemon's user can write. A plugin that cannot be used is listed, too, with a sentence that says what to
 * repair.
 */
import { lstat, readdir, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { shareKeysIn } from '../../config/checks/unfit-table.ts';
import type { ConfigContribution } from '../../contract/config.ts';
import type { Plugin } from '../../contract/plugin.ts';
import type { Logger } from '../../contract/platform.ts';
import type { Isolation } from '../../config/checks/third-party.ts';
import { contributionProblems } from '../../config/schema/schema.ts';
import { compareFound, dormantContribution, entryOf } from './found.ts';
import type { BrokenPlugin, DormantPlugin, FoundPlugin, UsablePlugin } from './found.ts';
import { actAs } from '../instance/acting-plugin.ts';
import { dryRun } from '../instance/instance.ts';
import { installedFolder } from './installed.ts';
import { manifestProblem, pickPlugin, readPackage, thirdPartyProblem, versioned } from './manifest.ts';
import type { PackageManifest } from './manifest.ts';
import { sentence } from '../../platform/log/thrown.ts';
import { createClock } from '../../platform/clock.ts';
import { importModule, loadModule } from '../../platform/load-module.ts';
import { createSemaphore } from '../../platform/semaphore.ts';
import {
  judgeContent,
  judgePassage,
  readTrusted,
  resolveTrusted,
  Untrusted,
} from '../../platform/files/ownership.ts';
import { MayPass, mayPass } from './may-pass.ts';
import { missingPackage } from './missing-package.ts';
import { preflight } from './preflight.ts';
import { isCarried, Runners } from '../runner/runners.ts';
import { prepareStage, stagePlugin } from './stage.ts';
import { isTypeScript } from './strip-types.ts';

const NONE: ReadonlySet<string> = new Set();
/** Most plugins in one folder: where everybody may create folders, their number has no limit. */
const MOST_FOLDERS = 200;
const MOST_MANIFEST_BYTES = 1_048_576;

export interface DiscoveryOptions {
  readonly inTree: string;
  readonly thirdPartyDirs: readonly string[];
  /** Names that the configuration switches on. No other third-party plugin is imported; default: none. */
  readonly enabled?: ReadonlySet<string>;
  /** Where the code of each runs; one that is not named gets a process of its own. */
  readonly isolation?: ReadonlyMap<string, Isolation>;
  /** Keeps those processes; default: one that nobody hears of. */
  readonly runners?: Runners;
  readonly stateDir: string;
  /** Copies that something runs from, or may be brought back from: they stay, however old they are. */
  readonly inUse?: () => ReadonlySet<string>;
  /** When set, no third-party plugin is imported; the sentence says why. */
  readonly strangersOff?: string;
  readonly log: Logger;
  /** Longest time for importing a third-party module, in milliseconds. */
  readonly importMs: number;
}

export interface DiscoveryRequest {
  readonly thirdPartyDirs: readonly string[];
  readonly stateDir: string;
  /** Names of plugins that the configuration switches on; no other third-party plugin is imported. */
  readonly enabled: ReadonlySet<string>;
  /** Where the code of each runs; one that is not named gets a process of its own. */
  readonly isolation?: ReadonlyMap<string, Isolation>;
}

/** Finds plugins for a host: the daemon's reads folders, a test's returns given plugins. */
export type Discovery = (request: DiscoveryRequest) => Promise<readonly FoundPlugin[]>;

/** Everything found, in-tree first, then by name. */
export async function discoverPlugins(options: DiscoveryOptions): Promise<readonly FoundPlugin[]> {
  const found = await discoverInTree(options);
  const refusedDirs: BrokenPlugin[] = [];
  for (const dir of options.thirdPartyDirs) {
    const problem = await dirProblem(dir);
    if (problem !== undefined) refusedDirs.push(refusedDir(dir, problem, options.log));
    else found.push(...(await discoverThirdParties(dir, options)));
  }
  return [...refuseClashes(found), ...refusedDirs, ...missing(refusedDirs[0], found, options)].sort(
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
  // An error here is reported with each plugin that it affects.
  if (wanted.length > 0) await prepareStage(stateDir).catch(() => undefined);
  // Concurrently: a plugin that loops while it is imported must not delay the others much.
  const found = await Promise.all(
    [...wanted, ...others]
      .slice(0, MOST_FOLDERS)
      .map((name) => loadThirdParty(path.join(dir, name), options)),
  );
  return found.filter((one) => one !== undefined);
}

/** Why nothing in a plugin folder can be trusted; checked before anything in it is read. */
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
 * Plugins that are switched on and were found nowhere, but may be in a refused folder, or let people in: any that runs
 * inside the daemon, as only such a one does.
 */
function missing(
  refusedFolder: BrokenPlugin | undefined,
  found: readonly FoundPlugin[],
  { enabled = NONE, isolation: places, stateDir, thirdPartyDirs }: DiscoveryOptions,
): BrokenPlugin[] {
  const { folder = thirdPartyDirs[0] ?? installedFolder(stateDir), problem } = refusedFolder ?? {};
  return [...enabled].flatMap((name) => {
    const isolation = places?.get(name) ?? 'own';
    const mayBeGuard = isolation === 'none';
    if (found.some((one) => one.name === name) || (problem === undefined && !mayBeGuard)) return [];
    const why = problem ?? nowhere(name);
    return [broken(path.join(folder, name), why, { thirdParty: true, guard: mayBeGuard, isolation })];
  });
}

function nowhere(name: string): string {
  return (
    'it is on, with isolation = "none", and is in no folder of plugins; ' +
    `put it back, or set plugins.${name}.enabled = false`
  );
}

/**
 * One third-party folder together with all in-tree plugins, as the daemon would find it. Imports it, unless
 * `options.enabled` leaves it out.
 */
export async function examinePlugin(
  folder: string,
  isolation: Isolation,
  options: DiscoveryOptions,
): Promise<FoundPlugin> {
  const at = path.resolve(folder);
  const name = path.basename(at);
  const one =
    (await loadThirdParty(at, {
      ...options,
      enabled: options.enabled ?? new Set([name]),
      isolation: new Map([[name, isolation]]),
    })) ?? broken(at, 'it is no folder', { thirdParty: true });
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
    ...(more.thirdParty && { isolation: 'own' as const }),
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
    ledger: dryRun(plugin, log, thirdParty),
  };
}

/** `version`: that of its package.json, for one that gives none itself. */
function checkedPlugin(module: Record<string, unknown>, name: string, version?: string): Plugin {
  const value = versioned(pickPlugin(module), version);
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

/** Undefined for what is not a folder. */
async function loadThirdParty(folder: string, options: DiscoveryOptions): Promise<FoundPlugin | undefined> {
  const found = await loadFolder(folder, options);
  return found && { ...found, isolation: options.isolation?.get(path.basename(folder)) ?? 'own' };
}

/**
 * A package.json that others can write cannot be believed when it says that the plugin does not authenticate clients;
 * one that cannot be read does not say so. In another process no plugin does, and where it runs is said by the
 * configuration's file alone.
 */
function isSuspect(error: unknown, manifest: object | undefined, isolation: Isolation | undefined): boolean {
  return isolation === 'none' && (error instanceof Untrusted || manifest === undefined);
}

async function loadFolder(folder: string, options: DiscoveryOptions): Promise<FoundPlugin | undefined> {
  const name = path.basename(folder);
  // Where the name is that of a plugin of ours, the switch means that one: no code of this one is run.
  const isOurs = await isThere(path.join(options.inTree, name, 'index.js'));
  const isEnabled = !isOurs && options.enabled?.has(name) === true;
  let manifest: PackageManifest | undefined;
  try {
    const real = await realFolder(folder);
    if (real === undefined) return undefined;
    manifest = await manifestOf(real, folder);
    if (!isEnabled) return dormant(folder, manifest);
    if (options.strangersOff !== undefined) throw new Error(options.strangersOff);
    return await loadStaged(folder, options);
  } catch (error) {
    const mayBeGuard = isEnabled && isSuspect(error, manifest, options.isolation?.get(name));
    return refused(folder, error, mayBeGuard ? { ...manifest, guard: true } : manifest);
  }
}

function dormant(
  folder: string,
  { version = '', description, guard, protocols, permissions, ...declared }: PackageManifest,
): DormantPlugin {
  const known = { name: path.basename(folder), version, description, guard, protocols, permissions };
  return { ...known, folder, thirdParty: true, contribution: dormantContribution(declared) };
}

function refused(folder: string, error: unknown, known: Partial<PackageManifest> = {}): BrokenPlugin {
  const { version = '', description = '', guard = false, protocols = [], shareKeys, permissions } = known;
  // Nothing that others can write says which keys pass unchecked.
  const isBelieved = shareKeys !== undefined && !(error instanceof Untrusted);
  const contribution = isBelieved ? dormantContribution({ ...known, shareKeys }) : undefined;
  const more = {
    version,
    description,
    guard,
    protocols,
    ...(contribution && { contribution }),
    ...(permissions && { permissions }),
    mayPass: mayPass(error),
  };
  return broken(folder, sentence(error), { thirdParty: true, ...more });
}

/** Undefined for what is no folder. Rejects with Untrusted where others may write. */
async function realFolder(folder: string): Promise<string | undefined> {
  if (!(await mayBeFolder(folder))) return undefined;
  const real = await resolveTrusted(folder);
  const stats = await lstat(real);
  if (!stats.isDirectory()) return undefined;
  judgeContent(real, stats, real);
  return real;
}

/** Symlinks are not followed: they may lead anywhere. */
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

/**
 * First runs at a time: each has its limit by the clock on the wall, and twenty at once would take it from each other
 * while a machine starts. Who has had a place for that long waits for something, or loops.
 */
const firstRuns = createSemaphore({
  places: 1 + availableParallelism(),
  heldAtMostMs: 5_000,
  clock: createClock(),
});

/** Entries that passed the pre-flight; a loaded module is not loaded again. */
const passed = new Set<string>();

/** By the package.json of the copy: that of the source may be another one by now, with other permissions. */
async function loadStaged(folder: string, options: DiscoveryOptions): Promise<UsablePlugin> {
  const name = path.basename(folder);
  const staged = await stagePlugin(folder, name, options.stateDir, {
    hasTypes: async (copy) => isTypeScript((await manifestOf(copy, folder)).entry),
    inUse: options.inUse,
  });
  const manifest = await manifestOf(staged.folder, folder);
  const entry = path.join(staged.folder, manifest.entry);
  if (!(await isThere(entry))) {
    throw new Error(
      `its entry ${manifest.entry} does not exist; name a .js, .mjs or .ts file as "exports" in package.json`,
    );
  }
  const leave = await firstRuns.enter();
  const module = await moduleOf({ ...staged, entry, name, manifest }, options)
    .finally(leave)
    .catch(async (error: unknown) => {
      const reason = sentence(error).replaceAll(staged.folder, folder);
      const missing = await missingPackage(reason, { folder, stateDir: options.stateDir });
      const Kind = mayPass(error) ? MayPass : Error;
      throw new Kind(missing ?? reason, { cause: undefined });
    });
  const plugin = checkedPlugin(module, name, manifest.version);
  const problem = thirdPartyProblem(plugin, manifest);
  if (problem !== undefined) throw new Error(problem);
  // Its `register` runs here, as its module did; that of one in another process is ours.
  const actor = isCarried(plugin) ? undefined : { name, folder: staged.folder };
  const found = actAs(actor, () => usable(plugin, folder, true, options.log));
  const { protocols, permissions } = manifest;
  return { ...found, stagedFolder: staged.folder, protocols, permissions };
}

interface StagedEntry {
  readonly entry: string;
  readonly name: string;
  readonly folder: string;
  readonly manifest: PackageManifest;
  readonly hash: string;
}

/** What has a process of its own, or shares one, is not imported here: its runner says what it declares. */
async function moduleOf(
  { entry, name, folder, manifest: declared, hash }: StagedEntry,
  { isolation: places, log, runners = new Runners({ log }), stateDir, importMs: timeoutMs }: DiscoveryOptions,
): Promise<Record<string, unknown>> {
  const isolation = places?.get(name) ?? 'own';
  if (isolation !== 'none') {
    const request = { entry, name, folder, declared, stateDir, timeoutMs };
    return { default: await runners.load(request, isolation) };
  }
  if (!passed.has(entry)) {
    const problem = await preflight({ entry, name, declared, timeoutMs });
    if (problem !== undefined) throw new Error(problem);
    passed.add(entry);
    log.info({ plugin: name, hash, loaded: passed.size }, 'third-party plugin loaded');
  }
  return actAs({ name, folder }, () => importModule(entry));
}

/**
 * Of several plugins with the same name, the same configuration key or section, the first one keeps it. In-tree
 * plugins come first, those that are broken or off last.
 */
function refuseClashes(found: readonly FoundPlugin[]): FoundPlugin[] {
  const kept = new Map<string, FoundPlugin>();
  const refused: FoundPlugin[] = [];
  const isIdle = (one: FoundPlugin): boolean => one.thirdParty && one.plugin === undefined;
  for (const one of [...found].sort(
    (a, b) => Number(a.thirdParty) - Number(b.thirdParty) || Number(isIdle(a)) - Number(isIdle(b)),
  )) {
    const first = kept.get(one.name);
    if (first) refused.push(refuseName(one, first));
    else kept.set(one.name, one);
  }
  // What is refused keeps what the document says by its keys valid, unless that clashes, too.
  const settled = refuseAllKeys(refuseAllKeys([...kept.values()]));
  return [...settled, ...refused];
}

function refuseAllKeys(found: readonly FoundPlugin[]): readonly FoundPlugin[] {
  const problems = contributionProblems(found.flatMap(entryOf));
  return found.map((one) => refuseKeys(one, problems.get(one.name)));
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
      ...(one.isolation && { isolation: one.isolation }),
    },
  );
}

/** As its package.json names them. */
function keysAlone(config: Plugin['config']): ConfigContribution | undefined {
  const { section, share } = config ?? {};
  if (section === undefined && share === undefined) return undefined;
  return dormantContribution({
    ...(section !== undefined && { section }),
    shareKeys: share ? shareKeysIn(share) : [],
  });
}

function refuseKeys(one: FoundPlugin, problem: string | undefined): FoundPlugin {
  if (problem === undefined) return one;
  if (one.problem !== undefined) {
    const { contribution: _, ...rest } = one;
    return rest;
  }
  const { name, version, description, thirdParty, guard, folder, isolation } = one;
  const contribution = thirdParty ? keysAlone(one.plugin?.config) : undefined;
  return broken(folder, `its configuration keys clash: ${problem}; give the key another name`, {
    name,
    version,
    description,
    thirdParty,
    guard,
    ...(isolation && { isolation }),
    ...(contribution && { contribution }),
  });
}
