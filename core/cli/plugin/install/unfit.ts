/** Whether what is in the configuration fits the version of a plugin that has just been put in place. */
import { readFile } from 'node:fs/promises';
import { unfitIn } from '../../../config/checks/unfit-table.ts';
import type { ConfigContribution } from '../../../contract/config.ts';
import type { Document } from '../../../sdk/toml/document.ts';
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
  const document = await readFile(configFile, 'utf8')
    .then(readToml)
    .catch(() => undefined);
  return document && contribution && unfitIn(document as Document, { owner: name, contribution });
}
