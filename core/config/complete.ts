/** Completes a validated document: absolute paths, and the defaults that plugins derive from other keys. */
import { resolve } from 'node:path';
import type { Config, ConfigProblem } from '../contract/config.ts';
import { copy, isTable } from '../sdk/toml/document.ts';
import { USUAL_PROTOCOLS } from './schema/core-schema.ts';
import { described } from './schema/described.ts';
import type { KeyNode } from './schema/key-tree.ts';
import { isOn } from './schema/schema.ts';
import type { Assembly, ContributionEntry } from './schema/schema.ts';
import { thrownBy } from './checks/plugin-checks.ts';
import type { ProtocolName } from './checks/protocols.ts';
import { isReference } from './secrets/secrets.ts';

export interface Completed {
  readonly config: Config;
  readonly problems: readonly ConfigProblem[];
  /** What third-party plugins failed to do; this does not make a document invalid. */
  readonly warnings: readonly string[];
}

/** A share that names none is shown by all that are there. */
function fillProtocols(config: Config, protocols: readonly ProtocolName[]): void {
  const provided = new Set(protocols.filter(({ isProvided }) => isProvided).map(({ name }) => name));
  const all = [...new Set([...USUAL_PROTOCOLS, ...provided])].filter((name) => provided.has(name));
  for (const share of config.shares) share.protocols ??= [...all];
}

/** What completes a document beside the plugins' own rules. */
export interface Surroundings {
  /** The one that relative paths start from. */
  readonly folder: string;
  readonly protocols: readonly ProtocolName[];
}

/** `validated` is changed in place. */
export function complete(
  validated: Record<string, unknown>,
  assembly: Assembly,
  { folder, protocols }: Surroundings,
): Completed {
  let config = absolutePaths(validated, assembly.root, folder) as Config;
  fillProtocols(config, protocols);
  const problems: ConfigProblem[] = [];
  const warnings: string[] = [];
  for (const entry of assembly.entries) {
    const { owner, contribution, thirdParty } = entry;
    if (contribution.complete === undefined || !isOn(entry, config)) continue;
    const draft = copy(config);
    try {
      contribution.complete(draft);
      config = thirdParty ? withOwnKeys(config, draft, entry) : draft;
    } catch (error) {
      const message = `plugin ${owner} could not fill in its defaults: ${thrownBy(thirdParty, error)}`;
      if (thirdParty) warnings.push(message);
      else problems.push({ message });
    }
  }
  for (const share of config.shares) share.mount_point ??= '';
  return { config, problems, warnings };
}

/**
 * Takes over only a third-party plugin's own keys from its draft: those that it declares, in its section
 * and in each share.
 */
function withOwnKeys(config: Config, draft: Config, { owner, contribution }: ContributionEntry): Config {
  const next = copy(config);
  const { section, schema, share } = contribution;
  const places = (of: Config): Record<string, unknown> =>
    section === undefined ? of.plugins : (of as unknown as Record<string, unknown>);
  const name = section ?? owner;
  if (isTable(places(next)[name]))
    places(next)[name] = taken(places(next)[name], places(draft)[name], keysOf(schema));
  if (share !== undefined) {
    next.shares = next.shares.map(
      (one, index) => taken(one, draft.shares[index], keysOf(share)) as Config['shares'][number],
    );
  }
  return next;
}

function keysOf(schema: NonNullable<ContributionEntry['contribution']['share']>): readonly string[] {
  return Object.keys((described(schema) as { keys?: object }).keys ?? {});
}

function taken(table: unknown, from: unknown, keys: readonly string[]): unknown {
  if (!isTable(table) || !isTable(from)) return table;
  const own = keys.filter((key) => Object.hasOwn(from, key)).map((key) => [key, structuredClone(from[key])]);
  return { ...table, ...(Object.fromEntries(own) as Record<string, unknown>) };
}

function absolutePaths(value: unknown, node: KeyNode | undefined, folder: string): unknown {
  if (typeof value === 'string')
    return node?.type === 'path' && value !== '' ? resolve(folder, value) : value;
  if (isReference(value)) return 'file' in value ? { file: resolve(folder, value.file) } : value;
  if (Array.isArray(value)) return value.map((item: unknown) => absolutePaths(item, itemNode(node), folder));
  return isTable(value) ? absoluteTable(value, node, folder) : value;
}

function itemNode(node: KeyNode | undefined): KeyNode | undefined {
  if (node?.kind === 'tables') return node;
  return node?.type.startsWith('array of path') === true ? { ...node, type: 'path' } : undefined;
}

/** Keys in the schema's order, so that the order of writing makes no difference; undeclared ones follow. */
function absoluteTable(
  table: Record<string, unknown>,
  node: KeyNode | undefined,
  folder: string,
): Record<string, unknown> {
  const keys = new Set([...(node?.children.keys() ?? []), ...Object.keys(table)]);
  const present = [...keys].filter((key) => Object.hasOwn(table, key));
  return Object.fromEntries(
    present.map((key) => [key, absolutePaths(table[key], node?.children.get(key), folder)]),
  );
}
