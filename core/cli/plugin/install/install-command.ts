/** `mountkeeper plugin install | remove | search`. None of them switches a plugin on. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { enabledIn, peekConfig } from '../../../config/peek.ts';
import type { Peeked } from '../../../config/peek.ts';
import type { CliContext } from '../../../contract/cli.ts';
import type { Permission } from '../../../contract/services.ts';
import { EXIT } from '../../exit-codes.ts';
import { mayOf } from '../author.ts';
import { agreeToMore, agreeToOlder, NOTHING_AGREED } from './consent.ts';
import type { Agreement } from './consent.ts';
import { everyUserHere } from './every-user.ts';
import { unfitTable } from './unfit.ts';
import { fetchPackage, provenanceOf, searchPackages } from './fetch.ts';
import { claimOf, examinePackage } from './judge.ts';
import { refuseLeftKeys } from './left-keys.ts';
import { NpmFault } from './npm.ts';
import type { Npm } from './npm.ts';
import { sourceOf } from './source.ts';
import type { Source } from './source.ts';
import { PluginStore } from './store.ts';
import type { Fetched, Installed } from './store.ts';

export interface Workshop {
  readonly cli: CliContext;
  readonly configFile: string;
  readonly peeked: Peeked;
  readonly store: PluginStore;
  /** Said with `--yes`: a plugin that is on may ask for more than before. */
  readonly agreement: Agreement;
}

export async function workshopOf(cli: CliContext, agreement: Agreement): Promise<Workshop> {
  const { configFile } = cli;
  const peeked = await peekConfig(configFile);
  const store = new PluginStore(peeked.stateDir, (sentence) => cli.printError(sentence));
  return { cli, configFile, peeked, agreement, store };
}

export function npmIn(project: string, { clock, signal }: CliContext): Npm {
  return { project, clock, signal };
}

/** Rejects with a sentence; nothing has changed then. */
export async function installPlugin(what: string, agreement: Agreement, cli: CliContext): Promise<number> {
  const workshop = await workshopOf(cli, agreement);
  const source = await sourceOf(what);
  const { store } = workshop;
  await store.alone(() =>
    store.withDraft(source, async (project) => {
      const npm = npmIn(project, cli);
      cli.progress(`npm fetches ${source.spec} …`);
      const fetched = await fetchPackage(source, npm).catch((error: unknown) => orFolder(error, what));
      const installed = await store.list();
      const claim = await claimOf(fetched, { ...workshop, installed });
      const { name, permissions } = claim;
      const former = installed.find((one) => one.name === name);
      const provenance = source.kind === 'registry' ? await provenanceOf(fetched, npm) : undefined;
      const { version } = fetched;
      if (former && enabledIn(workshop.peeked).has(name))
        await agreeToOlder({ name, version }, former.version, workshop);
      await agreeToMore({ name, version, permissions }, workshop);
      const entry = await examinePackage(claim, fetched, workshop.peeked);
      if (former) await refuseLeftKeys(name, entry, cli.configFile);
      cli.signal.throwIfAborted();
      await store.putInPlace(name, fetched);
      const unfit = await unfitTable({ name, contribution: entry?.contribution }, cli.configFile);
      const warning = await everyUserHere({ name, permissions }, workshop.peeked);
      report({ name, fetched, former, source, provenance, permissions, unfit, warning }, workshop);
    }),
  );
  return EXIT.ok;
}

/** As in npm, a folder is told from a package by its slash; after `plugin new` that is easily forgotten. */
function orFolder(error: unknown, what: string): never {
  if (error instanceof NpmFault && error.code === 'E404')
    throw new Error(`${error.message}; a folder is written with a slash: ./${what}`, { cause: error });
  throw error;
}

interface Result {
  readonly name: string;
  readonly fetched: Fetched;
  readonly former: Installed | undefined;
  readonly source: Source;
  readonly provenance: string | undefined;
  readonly permissions: readonly Permission[];
  /** The sentence about a table of its that does not fit. */
  readonly unfit: string | undefined;
  /** What its process may do beyond its permissions. */
  readonly warning: string | undefined;
}

function report(result: Result, { cli, configFile, peeked }: Workshop): void {
  const { name, fetched, former, provenance, permissions, unfit, warning } = result;
  const { version, integrity } = fetched;
  const isOn = enabledIn(peeked).has(name);
  if (cli.json) {
    const { package: packageName } = fetched;
    const known = { name, version, package: packageName, integrity, provenance, permissions, enabled: isOn };
    cli.print(
      JSON.stringify({ ...known, ...scriptsNotRun(fetched), former: former?.version, unfit, warning }),
    );
    return;
  }
  cli.print(`${name} ${version} is installed${former ? `, in place of ${former.version}` : ''}`);
  cli.table(rowsOf(result, peeked));
  if (warning !== undefined) cli.print(`${name}: ${warning}`);
  if (isOn) return cli.print(onWords(configFile, unfit));
  cli.print(`It is off. To switch it on, write into ${configFile}:\n`);
  cli.print(`  [plugins.${name}]\n  enabled = true`);
}

/** For programs, where there is something to say. */
export function scriptsNotRun({ hasScripts }: Fetched): { readonly scripts_not_run?: true } {
  return hasScripts ? { scripts_not_run: true } : {};
}

function rowsOf(
  { name, fetched, source, provenance, permissions }: Result,
  { isolation }: Peeked,
): readonly (readonly string[])[] {
  const { version, integrity, hasScripts } = fetched;
  return [
    ['  package', `${fetched.package}@${version}`],
    ...(source.kind === 'registry' ? [] : [['  from', source.spec]]),
    ['  integrity', integrity ?? 'npm names none'],
    ...(source.kind === 'registry' ? [['  provenance', provenanceText(provenance)]] : []),
    ['  it may', mayOf({ permissions, isolation: isolation.get(name) ?? 'own' })],
    ...(hasScripts ? [['  scripts', 'the package has scripts for its installation; they were not run']] : []),
  ];
}

function onWords(configFile: string, unfit: string | undefined): string {
  return `It is on: ${configFile} says so.${unfit === undefined ? '' : ` But ${unfit}`}`;
}

function provenanceText(provenance: string | undefined): string {
  if (provenance === undefined) return 'the registry did not say';
  return provenance === '' ? 'the registry shows none' : `shown by the registry, not verified: ${provenance}`;
}

export async function removePlugin(name: string, isForced: boolean, cli: CliContext): Promise<number> {
  const { configFile, peeked, store } = await workshopOf(cli, NOTHING_AGREED);
  return store.alone(async () => {
    if (!(await store.has(name))) throw notInstalled(name, await store.list());
    const isOn = enabledIn(peeked).has(name);
    if (isOn && !isForced)
      throw new Error(
        `${name} is on; first set plugins.${name}.enabled = false in ${configFile}, ` +
          'or take it away all the same with --force',
      );
    if (!isForced)
      await refuseLeftKeys(name, undefined, configFile).catch((error: unknown) => {
        throw new Error(`${(error as Error).message}, or take it away all the same with --force`, {
          cause: error,
        });
      });
    await store.remove(name);
    if (cli.json) cli.print(JSON.stringify({ name, removed: true }));
    else cli.print(`${name} is removed; what ${configFile} has for it in [plugins.${name}] is kept`);
    if (isOn && peeked.isolation.get(name) === 'none')
      cli.printError(
        `it may be what lets people in: until plugins.${name}.enabled is false, nobody will be let in`,
      );
    return EXIT.ok;
  });
}

export function notInstalled(name: string, installed: readonly Installed[]): Error {
  const names = installed.map((one) => one.name).join(', ');
  return new Error(
    `no plugin "${name}" was installed by 'plugin install'; ` +
      (names === '' ? 'none is' : `installed are: ${names}`),
  );
}

export async function searchPlugins(words: readonly string[], cli: CliContext): Promise<number> {
  const project = await mkdtemp(path.join(tmpdir(), 'mountkeeper-search-'));
  try {
    const found = await searchPackages(words, npmIn(project, cli));
    if (cli.json) cli.print(JSON.stringify(found));
    else if (found.length === 0) cli.print('the registry has no plugin for these words');
    else
      cli.table([
        ['package', 'version', 'about'],
        ...found.map(({ name, version, description }) => [name, version, description]),
      ]);
    return EXIT.ok;
  } finally {
    await rm(project, { recursive: true, force: true, maxRetries: 5 });
  }
}
