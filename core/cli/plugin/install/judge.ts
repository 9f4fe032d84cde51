/**
 * Whether a fetched package may become a plugin: what the daemon checks when it finds one, before the package
 * is where the daemon looks. Code is imported only of a plugin that is on already.
 */
import { access, lstat, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { enabledIn } from '../../../config/peek.ts';
import type { Peeked } from '../../../config/peek.ts';
import type { ConfigContribution } from '../../../contract/config.ts';
import type { Permission } from '../../../contract/services.ts';
import { IN_TREE_PLUGINS } from '../../../platform/package.ts';
import { examinePlugin } from '../../../plugins/discovery/discover.ts';
import { entryOf } from '../../../plugins/discovery/found.ts';
import type { FoundPlugin } from '../../../plugins/discovery/found.ts';
import { NAME, readPackage } from '../../../plugins/discovery/manifest.ts';
import { pluginFiles } from '../../../plugins/discovery/plugin-files.ts';
import type { Fetched, Installed } from './store.ts';

const IMPORT_MS = 10_000;

export interface Surroundings {
  readonly peeked: Peeked;
  readonly installed: readonly Installed[];
}

export interface Judged {
  readonly name: string;
  readonly permissions: readonly Permission[];
  /** What it declares of its keys. */
  readonly contribution: ConfigContribution | undefined;
}

/** The plugin's name and what it asks for. Rejects with a sentence that names the package and what is wrong with it. */
export async function judgePackage(
  fetched: Fetched,
  project: string,
  { peeked, installed }: Surroundings,
): Promise<Judged> {
  const label = `${fetched.package}@${fetched.version}`;
  try {
    const text = await readFile(path.join(fetched.folder, 'package.json'), 'utf8');
    const name = pluginName(JSON.parse(text) as PackageJson, fetched.package);
    // First of all: where the name belongs to a plugin that is on, its code would be run.
    refuseOther(name, fetched, installed);
    await refuseDouble(name, peeked.pluginDirs);
    const found = await examine(name, { fetched, project, peeked });
    const { entry, permissions } = readPackage(text);
    await access(path.join(fetched.folder, entry)).catch((cause: unknown) => {
      throw new Error(`its entry ${entry} is not in the package`, { cause });
    });
    for await (const _ of pluginFiles(fetched.folder));
    return { name, permissions, contribution: entryOf(found)[0]?.contribution };
  } catch (error) {
    throw new Error(`${label} is not installed: ${(error as Error).message}`, { cause: error });
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

interface Examination {
  readonly fetched: Fetched;
  readonly project: string;
  readonly peeked: Peeked;
}

async function examine(name: string, { fetched, project, peeked }: Examination): Promise<FoundPlugin> {
  const room = path.join(project, 'check');
  await mkdir(room, { mode: 0o700 });
  try {
    // Discovery takes the name of the folder for that of the plugin.
    const folder = path.join(room, name);
    await symlink(path.relative(room, fetched.folder), folder);
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
    await rm(room, { recursive: true, force: true });
  }
}

function adviceOn(problem: string): string {
  return /but its folder is called/.test(problem)
    ? ' (the folder is called after the package, or "mountkeeper": { "name": "…" } in its package.json)'
    : '';
}
