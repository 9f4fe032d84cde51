/** What a document says by the keys of a plugin that takes others now: it has got another version, or is hostile. */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigContribution, ConfigOrigin, LoadedConfig } from '../../contract/config.ts';
import type { Notice } from '../../contract/notifications.ts';
import Joi from 'joi';
import type { ObjectSchema } from 'joi';
import { messageOf } from '../../platform/log/thrown.ts';
import { isTable } from '../../sdk/toml/document.ts';
import type { Document } from '../../sdk/toml/document.ts';
import { described } from '../schema/described.ts';
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
  return problemIn(schema, ownKeys(table));
}

function problemIn(schema: ObjectSchema, value: unknown): string | undefined {
  try {
    const { error } = schema.validate(value, {
      convert: false,
      errors: { wrap: { label: false } },
      messages: SENTENCES,
    });
    return error?.message;
  } catch (error) {
    return `its schema cannot be used: ${messageOf(error)}`;
  }
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

type Owned = Pick<ContributionEntry, 'owner' | 'contribution'>;

/** The sentence about what stands in a document by a plugin's keys, and about what to do; undefined where it fits. */
export function unfitIn(document: Document, { owner, contribution }: Owned): string | undefined {
  const { migrate, schema, section, share } = contribution;
  const table = tablesIn(document)[owner];
  if (migrate) return unfitFor(owner, contribution, table);
  const problem =
    section === undefined ? fitProblem(contribution, table) : problemIn(schema, document[section] ?? {});
  if (problem !== undefined)
    return section === undefined
      ? `its table [plugins.${owner}] does not fit this version, which has no migration: ${problem}; change it by hand`
      : `its section [${section}] does not fit this version, which has no migration: ${problem}; change it by hand`;
  for (const [name, keys] of share ? keysOfShares(document, share) : []) {
    const wrong = problemIn(share as ObjectSchema, keys);
    if (wrong !== undefined)
      return `its keys of the share "${name}" do not fit this version: ${wrong}; change them by hand`;
  }
  return undefined;
}

/** What the shares say by the keys of a plugin, by the name of the share; without those that say nothing. */
function keysOfShares({ shares }: Document, share: ObjectSchema): Map<string, Record<string, unknown>> {
  const own = shareKeysIn(share);
  const said = (Array.isArray(shares) ? shares.filter(isTable) : []).map(
    (one) => [String(one['name']), own.filter((key) => Object.hasOwn(one, key)), one] as const,
  );
  return new Map(
    said
      .filter(([, keys]) => keys.length > 0)
      .map(([name, keys, one]) => [name, Object.fromEntries(keys.map((key) => [key, one[key]]))]),
  );
}

export function shareKeysIn(share: ObjectSchema): readonly string[] {
  return Object.keys((described(share) as { readonly keys?: object }).keys ?? {});
}

export interface Parted {
  readonly entries: readonly ContributionEntry[];
  /** Sentences by the plugin that is left out. */
  readonly unfit: ReadonlyMap<string, string>;
}

interface Moment {
  readonly origin: ConfigOrigin;
  readonly running: Document | undefined;
  /** There is no document yet that could stay in force. */
  readonly isStarting: boolean;
}

/**
 * What a third party's plugin does not take keeps no daemon from its start, and no other change of the document from
 * being made: the plugin is left out, everything else goes on. What somebody has just written is refused; but a table
 * that waits for its migration is not where it comes from the file, since a new version may have come with it.
 */
export function partUnfit(entries: readonly ContributionEntry[], document: Document, moment: Moment): Parted {
  const unfit = new Map<string, string>();
  const parted = entries.map((entry) => {
    const reason =
      entry.thirdParty && mayPart(entry, document, moment) ? unfitIn(document, entry) : undefined;
    if (reason === undefined) return entry;
    unfit.set(entry.owner, reason);
    return { ...entry, contribution: withAnyKeys(entry.contribution) };
  });
  return { entries: parted, unfit };
}

/** About the plugins that are left out. */
export function unfitNotice({ unfit = new Map() }: Pick<LoadedConfig, 'unfit'>): Notice | undefined {
  const said = [...unfit].map(([plugin, reason]) => `the plugin "${plugin}" is left out: ${reason}`);
  return said.length === 0 ? undefined : { level: 'warning', message: said.join('; ') };
}

function mayPart(
  entry: ContributionEntry,
  document: Document,
  { origin, running, isStarting }: Moment,
): boolean {
  if (isStarting || (origin === 'file' && entry.contribution.migrate !== undefined)) return true;
  return running !== undefined && isAsItWas(entry, document, running);
}

/** Nothing checks its keys then: over HTTP, too, they can only stay. */
function isAsItWas({ owner, contribution }: Owned, next: Document, running: Document): boolean {
  const { section, share } = contribution;
  const isSame = (of: (document: Document) => unknown): boolean => isDeepStrictEqual(of(next), of(running));
  if (!isSame((document) => tablesIn(document)[owner])) return false;
  if (section !== undefined && !isSame((document) => document[section])) return false;
  const former = share ? keysOfShares(running, share) : new Map<string, object>();
  return [...(share ? keysOfShares(next, share) : [])].every(([name, keys]) =>
    isDeepStrictEqual(keys, former.get(name)),
  );
}

function withAnyKeys(contribution: ConfigContribution): ConfigContribution {
  const { migrate: _, share, ...rest } = contribution;
  return {
    ...rest,
    schema: Joi.object().unknown(),
    ...(share && {
      share: Joi.object(Object.fromEntries(shareKeysIn(share).map((key) => [key, Joi.any()]))),
    }),
  };
}

function tablesIn({ plugins }: Document): Record<string, unknown> {
  return isTable(plugins) ? plugins : {};
}
