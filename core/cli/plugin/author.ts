/**
 * `mountkeeper plugin list | new | check`: the author's side of the command line.
 */
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import type { CliContext } from '../../contract/cli.ts';
import type { PluginInfo } from '../../contract/services.ts';
import { createSecrets } from '../../config/secrets/secrets.ts';
import { createClock } from '../../platform/clock.ts';
import { createProcesses } from '../../platform/processes/processes.ts';
import { keyProblems, readmeProblems, sampleProblems } from '../../testing/plugin-checks.ts';
import { describeLedger } from '../../plugins/describe-ledger.ts';
import { discoverPlugins, examinePlugin } from '../../plugins/discovery/discover.ts';
import type { DiscoveryOptions } from '../../plugins/discovery/discover.ts';
import { entryOf } from '../../plugins/discovery/found.ts';
import type { FoundPlugin, UsablePlugin } from '../../plugins/discovery/found.ts';
import { dryRun } from '../../plugins/instance/instance.ts';
import { contributedBy } from '../../plugins/contributed.ts';
import { NAME } from '../../plugins/discovery/manifest.ts';
import { scaffold } from './scaffold.ts';
import { packageDir } from '../../plugins/discovery/stage.ts';

const IMPORT_MS = 10_000;
const EXIT = { ok: 0, failure: 1, usage: 64 } as const;

/** A plugin as the host lists it, or as it comes over HTTP. */
export type PluginRow = Pick<PluginInfo, 'name' | 'version' | 'description'> & {
  readonly state: PluginInfo['state'] | 'enabled';
} & {
  readonly reason?: string | null | undefined;
  readonly thirdParty?: boolean;
  readonly third_party?: boolean;
};

/**
 * First row the header; one line per plugin, and the reason where there is one. A star marks what does not
 * come with the package.
 */
export function renderPluginTable(list: readonly PluginRow[]): readonly (readonly string[])[] {
  const isStranger = (row: PluginRow): boolean => row.thirdParty ?? row.third_party ?? false;
  const rows = list.map((row) => [
    row.name + (isStranger(row) ? ' *' : ''),
    row.version,
    row.state,
    row.reason ?? row.description,
  ]);
  return [['plugin', 'version', 'state', 'about'], ...rows];
}

/** Makes the folder `name` here, with a plugin that passes `check`. */
export async function newPlugin(name: string, cli: CliContext): Promise<number> {
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
  for (const [file, content] of Object.entries(scaffold(name, version)))
    await writeFile(path.join(folder, file), content, { mode: 0o644 });
  cli.print(`made ${folder}; try it:`);
  cli.print(`  mountkeeper plugin check ${name}`);
  cli.print(`  cd ${name} && npm install --save-dev ${quoted(packageDir)} && npm test`);
  cli.print(`then set  [plugins] dirs = ["${path.dirname(folder)}"]  and  [plugins.${name}] enabled = true`);
  return EXIT.ok;
}

function quoted(folder: string): string {
  return /^[\w./@-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
}

/** Looks at a plugin folder as the daemon would, without activating anything, and says what to mend. */
export async function checkPlugin(dir: string, cli: CliContext): Promise<number> {
  const stateDir = await mkdtemp(path.join(tmpdir(), 'mountkeeper-check-'));
  const options = {
    inTree: path.join(packageDir, 'dist', 'plugins'),
    thirdPartyDirs: [],
    stateDir,
    log: pino({ level: 'silent' }),
    importMs: IMPORT_MS,
  };
  try {
    const found = await examinePlugin(dir, options);
    const problems = found.plugin
      ? await allProblems(found, options)
      : [found.problem ?? 'it cannot be loaded'];
    const advice = found.plugin ? await paperAdvice(found) : [];
    if (cli.json)
      cli.print(JSON.stringify({ name: found.name, ok: problems.length === 0, problems, advice }));
    else print(found, { problems, advice }, cli);
    return problems.length === 0 ? EXIT.ok : EXIT.failure;
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

async function allProblems(found: UsablePlugin, options: DiscoveryOptions): Promise<readonly string[]> {
  const { plugin, folder } = found;
  const { log, stateDir } = options;
  const clock = createClock();
  const services = {
    clock,
    secrets: createSecrets({ env: process.env }),
    processes: createProcesses({ stateDir, clock, log }),
  };
  const entries = [...(await discoverPlugins(options)), found].flatMap(entryOf);
  const isSteady =
    JSON.stringify(describeLedger(dryRun(plugin, log))) === JSON.stringify(describeLedger(found.ledger));
  return [
    ...(isSteady
      ? []
      : ['register() declares something else each time it is called; it must depend on nothing']),
    ...keyProblems(plugin),
    ...((await hasSample(folder)) ? await sampleProblems(folder, { entries, services, log }) : []),
  ];
}

/** What the daemon does without, and the plugin's users do not: its papers. */
async function paperAdvice({ plugin, folder }: UsablePlugin): Promise<readonly string[]> {
  const sample = (await hasSample(folder))
    ? []
    : ['sample.toml is missing; it shows users a working configuration'];
  return [...(await readmeProblems(folder, plugin.name)), ...sample];
}

function hasSample(folder: string): Promise<boolean> {
  return access(path.join(folder, 'sample.toml')).then(
    () => true,
    () => false,
  );
}

interface Findings {
  readonly problems: readonly string[];
  readonly advice: readonly string[];
}

function print(found: FoundPlugin, { problems, advice }: Findings, cli: CliContext): void {
  if (found.plugin) {
    cli.print(`${found.name} ${found.version}: ${found.description}`);
    for (const line of contributedBy(found.ledger).map(([kind, names]) => `${kind}: ${names.join(', ')}`))
      cli.print(`  ${line}`);
  }
  for (const problem of problems) cli.printError(`${found.name}: ${problem}`);
  for (const line of advice) cli.print(`before others use it: ${line}`);
  if (problems.length === 0) cli.print(`${found.name} is fine`);
}
