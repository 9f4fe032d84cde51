/** Whether the table in the configuration fits the version of a plugin that has just been put in place. */
import { readFile } from 'node:fs/promises';
import { fitProblem, unfitFor } from '../../../config/checks/unfit-table.ts';
import type { ConfigContribution } from '../../../contract/config.ts';
import { isTable } from '../../../sdk/toml/document.ts';
import { readToml } from '../../../sdk/toml/edit.ts';

export interface Declared {
  readonly name: string;
  readonly contribution: ConfigContribution | undefined;
}

/**
 * The sentence that says what is wrong and what to do; undefined where it fits, where there is none, and where the file
 * cannot be read, which whoever loads it says.
 */
export async function unfitTable(
  { name, contribution }: Declared,
  configFile: string,
): Promise<string | undefined> {
  // Whoever loads the file says what is wrong with it.
  const table = await tableIn(configFile, name).catch(() => undefined);
  if (!contribution || contribution.section !== undefined || !isTable(table)) return undefined;
  if (contribution.migrate) return unfitFor(name, contribution, table);
  const problem = fitProblem(contribution, table);
  if (problem === undefined) return undefined;
  return `its table [plugins.${name}] does not fit this version, which has no migration: ${problem}; change it by hand`;
}

async function tableIn(configFile: string, name: string): Promise<unknown> {
  const { plugins } = readToml(await readFile(configFile, 'utf8'));
  return isTable(plugins) ? plugins[name] : undefined;
}
