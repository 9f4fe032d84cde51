/** `mountkeeper plugin list | new NAME | check DIR`: tools for authors of plugins. */
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { goneIn, inWords } from '../../plugins/permissions.ts';
import type { CliContext } from '../../contract/cli.ts';
import type { PluginInfo } from '../../contract/services.ts';
import { isolationsIn } from '../../config/peek.ts';
import { parseDocument } from '../../sdk/toml/document.ts';
import { createClock } from '../../platform/clock.ts';
import { createProcesses } from '../../platform/processes/processes.ts';
import { keyProblems, readmeProblems, sampleProblems, sampleSecrets } from '../../testing/plugin-checks.ts';
import { describeLedger } from '../../plugins/describe-ledger.ts';
import { discoverPlugins, examinePlugin } from '../../plugins/discovery/discover.ts';
import type { DiscoveryOptions } from '../../plugins/discovery/discover.ts';
import { entryOf, protocolsOf } from '../../plugins/discovery/found.ts';
import type { FoundPlugin, UsablePlugin } from '../../plugins/discovery/found.ts';
import { contributedBy } from '../../plugins/contributed.ts';
import { NAME } from '../../plugins/discovery/manifest.ts';
import { VOUCH } from '../../plugins/runner/protocol.ts';
import { COPY_PREFIX } from './install/judge.ts';
import { scaffold } from './scaffold.ts';
import type { Language } from './scaffold.ts';
import { packageDir } from '../../plugins/discovery/stage.ts';

type Isolation = PluginInfo['isolation'];

const PROCESS: Readonly<Record<Isolation, string>> = { own: 'its own', shared: 'shared', none: 'daemon' };
const RUNS: Readonly<Record<Isolation, string>> = {
  own: 'in a process of its own',
  shared: 'in a process that it shares',
  none: 'inside the daemon',
};

const IMPORT_MS = 10_000;
const EXIT = { ok: 0, failure: 1, usage: 64 } as const;

/** A plugin as the host lists it, or as HTTP returns it. */
export type PluginRow = Pick<PluginInfo, 'name' | 'version' | 'description'> & {
  readonly state: PluginInfo['state'] | 'enabled';
} & {
  readonly reason?: string | null | undefined;
  readonly thirdParty?: boolean;
  readonly third_party?: boolean;
  readonly isolation?: Isolation;
  readonly permissions?: PluginInfo['permissions'] | null;
};

/**
 * The first row is the header; one row per plugin, with the process it runs in, or would, and the reason
 * where there is one. A star marks third-party plugins; of those, it is said what they ask for.
 */
export function renderPluginTable(list: readonly PluginRow[]): readonly (readonly string[])[] {
  const isStranger = (row: PluginRow): boolean => row.thirdParty ?? row.third_party ?? false;
  const rows = list.map((row) => [
    row.name + (isStranger(row) ? ' *' : ''),
    row.version,
    row.state,
    PROCESS[row.isolation ?? 'none'],
    (row.reason ?? row.description) + (row.permissions ? ` (it may ${mayOf(row)})` : ''),
  ]);
  return [['plugin', 'version', 'state', 'process', 'about'], ...rows];
}

/** As "read the status, start processes". What runs inside the daemon is not held to what it asks for. */
export function mayOf({ permissions, isolation }: Pick<PluginRow, 'permissions' | 'isolation'>): string {
  return isolation === undefined || isolation === 'none'
    ? 'do everything: it runs inside the daemon'
    : inWords(permissions ?? []);
}

/** Creates the folder `name` here, with a plugin that passes `check`. */
export async function newPlugin(name: string, cli: CliContext, language: Language = 'js'): Promise<number> {
  if (!NAME.test(name)) {
    cli.printError(
      `"${name}" cannot be the name of a plugin; use small letters, digits and single hyphens, such as "garden-lights"`,
    );
    return EXIT.usage;
  }
  const folder = path.resolve(name);
  try {
    await mkdir(folder, 0o755);
  } catch (error) {
    cli.printError(
      (error as NodeJS.ErrnoException).code === 'EEXIST'
        ? `${folder} exists already; choose another name or take it away`
        : `${folder} cannot be made: ${(error as Error).message}`,
    );
    return EXIT.failure;
  }
  const { version } = JSON.parse(await readFile(path.join(packageDir, 'package.json'), 'utf8')) as {
    version: string;
  };
  for (const [file, content] of Object.entries(scaffold(name, version, language)))
    await writeFile(path.join(folder, file), content, { mode: 0o644 });
  cli.print(`made ${folder}; try it:`);
  cli.print(`  mountkeeper plugin check ${name}`);
  const compiler = language === 'ts' ? ' typescript @types/node' : '';
  cli.print(`  cd ${name} && npm install --save-dev ${quoted(packageDir)}${compiler} && npm test`);
  cli.print(`then set  [plugins] dirs = ["${path.dirname(folder)}"]  and  [plugins.${name}] enabled = true`);
  return EXIT.ok;
}

function quoted(folder: string): string {
  return /^[\w./@-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
}

/**
 * Looks at a plugin folder as the daemon would, without activating anything, and says what to repair. Its code is
 * loaded where the daemon would load it. One whose sample asks for the daemon itself is loaded here, with all that
 * the caller may do, and a package can ask for that by itself: so somebody has to agree.
 */
export async function checkPlugin(dir: string, isAgreed: boolean, cli: CliContext): Promise<number> {
  const stateDir = await mkdtemp(COPY_PREFIX);
  const options = {
    inTree: path.join(packageDir, 'dist', 'plugins'),
    thirdPartyDirs: [],
    stateDir,
    log: pino({ level: 'silent' }),
    importMs: IMPORT_MS,
  };
  try {
    const isolation = await isolationInSample(path.resolve(dir));
    const isRefused = isolation === 'none' && !isAgreed;
    // Nothing of one that is not enabled is run.
    const examine = (): Promise<FoundPlugin> =>
      examinePlugin(dir, isolation, isRefused ? { ...options, enabled: new Set() } : options);
    const found = await examine();
    const problems = found.plugin
      ? await allProblems({ found, again: await examine() }, options)
      : [carryingHint(found.problem) ?? notAgreed(dir)];
    const advice = found.plugin ? await paperAdvice(found) : [];
    if (cli.json)
      cli.print(
        JSON.stringify({
          name: found.name,
          ok: problems.length === 0,
          isolation,
          permissions: found.permissions ?? [],
          problems,
          advice,
        }),
      );
    else print(found, { isolation, problems, advice }, cli);
    return problems.length === 0 ? EXIT.ok : EXIT.failure;
  } finally {
    // A process that has said what it declares may be on its way out.
    await rm(stateDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Only the author can set it for all users. */
function carryingHint(problem: string | undefined): string | undefined {
  return problem?.includes(VOUCH) ? `${problem}; as its author, set it in its sample.toml, too` : problem;
}

function notAgreed(dir: string): string {
  return (
    'its sample.toml says isolation = "none", so its code would be run here, with all that you may do; ' +
    `where you vouch for it: mountkeeper plugin check ${quoted(dir)} --yes`
  );
}

interface Examined {
  readonly found: UsablePlugin;
  /** Loaded once more, in another process. */
  readonly again: FoundPlugin;
}

async function allProblems(
  { found, again }: Examined,
  options: DiscoveryOptions,
): Promise<readonly string[]> {
  const { plugin, folder } = found;
  const { log, stateDir } = options;
  const clock = createClock();
  const services = {
    clock,
    secrets: sampleSecrets,
    processes: createProcesses({ stateDir, clock, log }),
  };
  const entries = [...(await discoverPlugins(options)), found].flatMap(entryOf);
  const isSteady =
    again.plugin !== undefined &&
    JSON.stringify(describeLedger(again.ledger)) === JSON.stringify(describeLedger(found.ledger));
  return [
    ...(isSteady
      ? []
      : ['register() declares something else each time it is called; it must depend on nothing']),
    ...keyProblems(plugin),
    ...((await hasSample(folder)) ? await sampleProblems(folder, { entries, services, log }) : []),
  ];
}

/** What the daemon does without, and the plugin's users do not: its papers. */
async function paperAdvice(found: UsablePlugin): Promise<readonly string[]> {
  const { plugin, folder } = found;
  const unnamed = protocolsOf(found).filter(({ isNameable }) => !isNameable);
  const protocols = unnamed.map(
    ({ name }) =>
      `package.json lacks "mountkeeper": { "protocols": ["${name}"] }; ` +
      `with it, a share that names ${name} stays valid while the plugin is off`,
  );
  const sample = (await hasSample(folder))
    ? []
    : ['sample.toml is missing; it shows users a working configuration'];
  return [
    ...protocols,
    ...(await goneAdvice(folder)),
    ...(await readmeProblems(folder, plugin.name)),
    ...sample,
  ];
}

/** Its package.json has been read before. */
async function goneAdvice(folder: string): Promise<readonly string[]> {
  const { mountkeeper } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as {
    readonly mountkeeper?: { readonly permissions?: unknown } | null;
  };
  return goneIn(mountkeeper?.permissions);
}

/** What its users are told to set: a plugin that cannot be carried must say so itself. */
async function isolationInSample(folder: string): Promise<Isolation> {
  // Advice says that it is missing.
  const text = await readFile(path.join(folder, 'sample.toml'), 'utf8').catch(() => '');
  const parsed = parseDocument(text);
  return (
    ('document' in parsed && isolationsIn(parsed.document['plugins']).get(path.basename(folder))) || 'own'
  );
}

function hasSample(folder: string): Promise<boolean> {
  return access(path.join(folder, 'sample.toml')).then(
    () => true,
    () => false,
  );
}

interface Findings {
  readonly isolation: Isolation;
  readonly problems: readonly string[];
  readonly advice: readonly string[];
}

function print(found: FoundPlugin, { isolation, problems, advice }: Findings, cli: CliContext): void {
  if (found.plugin) {
    cli.print(`${found.name} ${found.version}: ${found.description}`);
    for (const line of contributedBy(found.ledger).map(([kind, names]) => `${kind}: ${names.join(', ')}`))
      cli.print(`  ${line}`);
    cli.print(`  runs: ${RUNS[isolation]}`);
    cli.print(`  may: ${mayOf({ permissions: found.permissions, isolation })}`);
  }
  for (const problem of problems) cli.printError(`${found.name}: ${problem}`);
  for (const line of advice) cli.print(`before others use it: ${line}`);
  if (problems.length === 0) cli.print(`${found.name} is fine`);
}
