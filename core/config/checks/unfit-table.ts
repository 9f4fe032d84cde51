/** The table of a plugin that has got another version, and with it another form of its keys. */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigContribution, ConfigOrigin } from '../../contract/config.ts';
import Joi from 'joi';
import { isTable } from '../../sdk/toml/document.ts';
import type { Document } from '../../sdk/toml/document.ts';
import type { ContributionEntry } from '../schema/schema.ts';
import { SENTENCES } from '../schema/sentences.ts';

/** Keys of `[plugins.<name>]` that are the core's. */
const CORE_KEYS: ReadonlySet<string> = new Set(['enabled', 'log_level', 'isolation']);

/** What of a plugin's table is the plugin's own. */
export function ownKeys(table: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(isTable(table) ? table : {}).filter(([key]) => !CORE_KEYS.has(key)),
  );
}

/** What is wrong with a plugin's table by its own schema; undefined where it fits. */
export function fitProblem({ schema }: ConfigContribution, table: unknown): string | undefined {
  const { error } = schema.validate(ownKeys(table), {
    convert: false,
    errors: { wrap: { label: false } },
    messages: SENTENCES,
  });
  return error?.message;
}

/** The sentence about a table that `migrate` has to bring to another form; undefined where it fits. */
export function unfitFor(name: string, contribution: ConfigContribution, table: unknown): string | undefined {
  const problem = fitProblem(contribution, table);
  if (problem === undefined) return undefined;
  return (
    `its table [plugins.${name}] is not in the form of this version of the plugin: ${problem}; ` +
    `"mountkeeper plugin migrate ${name}" shows it in the new form and writes it`
  );
}

export interface Parted {
  readonly entries: readonly ContributionEntry[];
  readonly warnings: readonly string[];
}

/**
 * A third party's table that waits for its migration makes no document invalid: the plugin is left out, everything
 * else goes on. Over HTTP that holds for a table that stays as it is alone, since nothing checks its keys.
 */
export function partUnfit(
  entries: readonly ContributionEntry[],
  document: Document,
  { origin, running }: { readonly origin: ConfigOrigin; readonly running: Document | undefined },
): Parted {
  const tables = tablesIn(document);
  const former = tablesIn(running ?? {});
  const warnings: string[] = [];
  const parted = entries.map((entry) => {
    const { owner, contribution, thirdParty } = entry;
    if (!thirdParty || !contribution.migrate) return entry;
    if (origin === 'http' && !isDeepStrictEqual(tables[owner], former[owner])) return entry;
    const unfit = unfitFor(owner, contribution, tables[owner]);
    if (unfit === undefined) return entry;
    warnings.push(`plugin ${owner}: ${unfit}`);
    const { migrate: _, ...rest } = contribution;
    return { ...entry, contribution: { ...rest, schema: Joi.object().unknown() } };
  });
  return { entries: parted, warnings };
}

function tablesIn({ plugins }: Document): Record<string, unknown> {
  return isTable(plugins) ? plugins : {};
}
