/** `mountkeeper plugin migrate`: brings a plugin's table to the form of the version that is there now. */
import { readFile } from 'node:fs/promises';
import { fitProblem, ownKeys } from '../../config/checks/unfit-table.ts';
import { replaceFile } from '../../config/write.ts';
import type { CliContext } from '../../contract/cli.ts';
import type { ConfigContribution, TomlEdit } from '../../contract/config.ts';
import { timeBox } from '../../platform/deadline.ts';
import { refuseForeignPlace } from '../../platform/files/ownership.ts';
import { plainCopy } from '../../plugins/instance/given-values.ts';
import { isTable } from '../../sdk/toml/document.ts';
import { editToml, readToml } from '../../sdk/toml/edit.ts';
import { EXIT } from '../exit-codes.ts';
import { openOffline } from '../offline.ts';
import type { Offline } from '../offline.ts';

const MIGRATE_MS = 15_000;

/** Shows the new form; with `isAgreed` writes it, too. On any failure the file is as it was. */
export async function migratePlugin(
  name: string,
  { configFile, isAgreed }: { readonly configFile: string; readonly isAgreed: boolean },
  cli: CliContext,
): Promise<number> {
  const offline = await openOffline(configFile);
  try {
    await refuseForeignPlace(configFile);
    const before = await readFile(configFile, 'utf8');
    const after = await migratedText(name, before, offline);
    if (after === undefined) {
      cli.print(`[plugins.${name}] is in the form of the version that is there; nothing is to be done`);
      return EXIT.ok;
    }
    const check = await offline.config.check(after, 'file');
    if (!check.ok) throw new Error(`the document is not valid with it: ${check.message}`);
    show(offline.config.shown(before), offline.config.shown(after), cli);
    if (!isAgreed) {
      cli.print(
        `nothing is written yet; "mountkeeper plugin migrate ${name} --yes" writes it to ${configFile}`,
      );
      return EXIT.ok;
    }
    if ((await readFile(configFile, 'utf8')) !== before)
      throw new Error('the file has just been changed by somebody else');
    await replaceFile(configFile, after);
    cli.print(`written to ${configFile}`);
    return EXIT.ok;
  } catch (error) {
    cli.printError(`${name} is not migrated, and nothing is changed: ${(error as Error).message}`);
    return EXIT.failure;
  } finally {
    await offline.close();
  }
}

/** Undefined where the table fits as it is. Throws a sentence. */
async function migratedText(
  name: string,
  text: string,
  { host, clock, isOn }: Offline,
): Promise<string | undefined> {
  if (!isOn(name))
    throw new Error('it is off, or not there: only a plugin that is on says what its keys are');
  const refused = host.refused().find((one) => one.name === name);
  if (refused) throw new Error(refused.reason);
  const entry = host.entries().find(({ owner }) => owner === name);
  const { plugins } = readToml(text);
  const table = isTable(plugins) ? plugins[name] : undefined;
  if (!entry || !isTable(table)) throw new Error(`there is no such plugin with a table [plugins.${name}]`);
  const { contribution, version } = entry;
  const problem = fitProblem(contribution, table);
  if (problem === undefined) return undefined;
  if (!contribution.migrate)
    throw new Error(
      `its table does not fit its version ${version} (${problem}), and that version has no migration; ` +
        'install the version that the table was written for, or change the table by hand',
    );
  const own = ownKeys(table);
  const work = (async () => contribution.migrate?.(structuredClone(own)))();
  const next = checked(contribution, version, await timeBox(clock, MIGRATE_MS, work));
  return editToml(text, editsBetween(name, own, next));
}

function checked(
  contribution: ConfigContribution,
  version: string,
  given: unknown,
): Readonly<Record<string, unknown>> {
  const next = plainCopy(given ?? null);
  if (!isTable(next)) throw new Error('its migration gave no table');
  const stray = Object.keys(next).find((key) => !Object.hasOwn(ownKeys(next), key));
  if (stray !== undefined) throw new Error(`its migration gave the key "${stray}", which is the core's own`);
  const problem = fitProblem(contribution, next);
  if (problem === undefined) return next;
  throw new Error(`what its migration gave does not fit its version ${version}: ${problem}`);
}

/** What goes and what comes; a key that stays as it is keeps its place and its comment. */
function editsBetween(
  name: string,
  own: Readonly<Record<string, unknown>>,
  next: Readonly<Record<string, unknown>>,
): readonly TomlEdit[] {
  const path = (key: string): readonly string[] => ['plugins', name, key];
  const isSame = (key: string): boolean => JSON.stringify(own[key]) === JSON.stringify(next[key]);
  return [
    ...Object.keys(own).flatMap((key) => (Object.hasOwn(next, key) ? [] : [{ path: path(key) }])),
    ...Object.entries(next).flatMap(([key, value]) => (isSame(key) ? [] : [{ path: path(key), value }])),
  ];
}

/** Lines that go and lines that come, without secrets. */
function show(before: string, after: string, cli: CliContext): void {
  const [old, now] = [before.split('\n'), after.split('\n')];
  for (const line of old.filter((one) => !now.includes(one))) cli.print(`- ${line}`);
  for (const line of now.filter((one) => !old.includes(one))) cli.print(`+ ${line}`);
}
