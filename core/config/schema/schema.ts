/**
 * The assembled schema: the core's keys and those of all discovered plugins, active or not, as one Joi
 * schema and one key tree. A contribution that cannot be merged is left out and reported with its reason;
 * the others are used.
 */
import Joi from 'joi';
import type { ArraySchema, ObjectSchema } from 'joi';
import { messageOf } from '../../platform/log/thrown.ts';
import { described } from './described.ts';
import { buildNode } from './key-tree.ts';
import type { KeyNode } from './key-tree.ts';
import {
  assertDisjoint,
  closed,
  core,
  joinedPart,
  ownTable,
  partOf,
  SHARE,
  sharesOf,
  withDefault,
} from './parts.ts';
import type { ContributionEntry, Part } from './parts.ts';
import { SENTENCES } from './sentences.ts';

export type { ContributionEntry } from './parts.ts';

/** Whether a document switches the plugin on. In-tree plugins count as on in any case. */
export function isOn({ owner, enabledByDefault, thirdParty }: ContributionEntry, document: unknown): boolean {
  if (!thirdParty) return true;
  const { plugins } = document as { plugins?: Record<string, { enabled?: unknown } | undefined> };
  const said = plugins?.[owner]?.enabled;
  return typeof said === 'boolean' ? said : enabledByDefault;
}

export interface Rejection {
  readonly owner: string;
  readonly reason: string;
}

export interface Assembly {
  readonly schema: ObjectSchema;
  readonly root: KeyNode;
  /** Contributions that were merged. */
  readonly entries: readonly ContributionEntry[];
  readonly rejected: readonly Rejection[];
  /** Names of all discovered plugins. */
  readonly plugins: readonly string[];
}

/** Sections under construction, by name; shares are kept as `[[shares]]`. */
type Parts = Map<string, Part>;

const OWN_NAMES = new Set(['connections', 'shares', 'plugins']);

let last: { readonly of: readonly ContributionEntry[]; readonly assembly: Assembly } | undefined;

/**
 * Merges the core's keys with every contribution. Never throws. The last result is cached, because
 * discovery and the first check ask for the same.
 */
export function assemble(entries: readonly ContributionEntry[]): Assembly {
  if (!last || !areSame(last.of, entries)) last = { of: [...entries], assembly: assembleAnew(entries) };
  return last.assembly;
}

function areSame(some: readonly ContributionEntry[], others: readonly ContributionEntry[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index];
      return (
        one.contribution === other?.contribution &&
        one.owner === other.owner &&
        one.version === other.version &&
        one.thirdParty === other.thirdParty &&
        one.enabledByDefault === other.enabledByDefault &&
        one.guard === other.guard
      );
    })
  );
}

function assembleAnew(entries: readonly ContributionEntry[]): Assembly {
  const parts: Parts = new Map([[SHARE, core().share], ...core().sections]);
  const joined: ContributionEntry[] = [];
  const rejected: Rejection[] = [];
  const own = new Map<string, Part>();
  for (const entry of entries) {
    try {
      const additions = contributed(entry, parts);
      for (const [name, addition] of additions) assertDisjoint(parts.get(name), addition);
      for (const [name, addition] of additions) join(parts, name, addition);
      own.set(entry.owner, ownTable(entry));
      joined.push(entry);
    } catch (error) {
      rejected.push({ owner: entry.owner, reason: messageOf(error) });
    }
  }
  return { ...finish(parts, own), entries: joined, rejected, plugins: entries.map((entry) => entry.owner) };
}

/** Contributions that cannot be merged with those before them: the reason, by owner. */
export function contributionProblems(entries: readonly ContributionEntry[]): ReadonlyMap<string, string> {
  return new Map(assemble(entries).rejected.map(({ owner, reason }) => [owner, reason]));
}

function contributed(entry: ContributionEntry, parts: Parts): (readonly [string, Part])[] {
  const { section, schema, share } = entry.contribution;
  if (entry.owner === 'dirs')
    throw new Error('a plugin cannot be called "dirs", since [plugins] has a key of that name');
  assertOurJoi(schema, entry.owner);
  const additions: (readonly [string, Part])[] = [];
  if (section !== undefined) {
    if (OWN_NAMES.has(section) || !/^[a-z][a-z0-9_]*$/.test(section))
      throw new Error(`plugin ${entry.owner}: "${section}" cannot be the name of its section`);
    // Beside its keys there would be those of others, passwords among them.
    if (entry.thirdParty && parts.has(section))
      throw new Error(
        `plugin ${entry.owner}: the section [${section}] is not its own, as a third party's has to be`,
      );
    additions.push([section, partOf(schema, section, entry.owner)]);
  }
  if (share !== undefined) {
    assertOurJoi(share, entry.owner);
    additions.push([SHARE, partOf(closed(share), SHARE, entry.owner)]);
  }
  return additions;
}

function join(parts: Parts, name: string, addition: Part): void {
  const existing = parts.get(name);
  parts.set(name, existing === undefined ? addition : joinedPart(existing)(addition));
}

function finish(parts: Parts, own: ReadonlyMap<string, Part>): Pick<Assembly, 'schema' | 'root'> {
  const share = parts.get(SHARE) as Part;
  const sections = sectionOrder(parts).map((name) => [name, parts.get(name) as Part] as const);
  const { connections } = core();
  const shares = sharesOf(share.schema);
  const plugins = pluginsPart(own);
  const schema = Joi.object({
    connections,
    shares,
    ...Object.fromEntries(sections.map(([name, { schema: section }]) => [name, withDefault(section)])),
    plugins: plugins.schema,
  }).messages(SENTENCES);
  const children = new Map<string, KeyNode>([
    ['connections', arrayNode(connections, 'connections')],
    ['shares', { ...arrayNode(shares, 'shares'), children: share.node.children }],
    ...sections.map(([name, { node }]) => [name, node] as const),
    ['plugins', plugins.node],
  ]);
  return {
    schema,
    root: {
      ...buildNode({ type: 'object', keys: {} }, { path: '', owner: 'core', tier: 'global' }),
      open: false,
      children,
    },
  };
}

function pluginsPart(own: ReadonlyMap<string, Part>): Part {
  const { schema: base, node } = core().plugins;
  const tables = Object.fromEntries([...own].map(([name, { schema }]) => [name, withDefault(schema)]));
  // Plugins that were not found keep their keys: their folder may come back.
  // An empty list of keys would allow none at all.
  const schema = (own.size === 0 ? base : base.keys(tables))
    .pattern(Joi.string(), Joi.object().unknown())
    .default();
  return {
    schema,
    node: {
      ...node,
      open: true,
      children: new Map([
        ...node.children,
        ...[...own].map(([name, { node: table }]) => [name, table] as const),
      ]),
    },
  };
}

function arrayNode(schema: ArraySchema, path: string): KeyNode {
  return buildNode(described(schema), { path, owner: 'core', tier: 'per-share' });
}

/** The core's sections in their own order, then the plugins' by name. */
function sectionOrder(parts: Parts): string[] {
  const ours = core().sections.map(([name]) => name);
  const added = [...parts.keys()].filter((name) => name !== SHARE && !ours.includes(name)).toSorted();
  return [...ours, ...added];
}

/** Joi rules of two copies of the library cannot be mixed, and some copies fail only when first used. */
function assertOurJoi(schema: unknown, owner: string): void {
  // Every schema of one copy of Joi shares its methods.
  const isOurs =
    typeof schema === 'object' &&
    schema !== null &&
    (schema as { describe?: unknown }).describe === Joi.any().describe;
  if (!isOurs)
    throw new Error(
      `plugin ${owner}: its schema was made by another Joi; ` +
        `import Joi from 'mountkeeper' and drop joi from the plugin's dependencies`,
    );
  if ((schema as { type?: unknown }).type !== 'object')
    throw new Error(`plugin ${owner}: its schema is no Joi.object()`);
  const missing = emptyProblem(schema as ObjectSchema, owner);
  if (missing !== undefined)
    throw new Error(
      `plugin ${owner}: every key needs a default or must be optional, since discovering a plugin ` +
        `must not make a document invalid: ${missing}`,
    );
}

function emptyProblem(schema: ObjectSchema, owner: string): string | undefined {
  try {
    return schema.validate({}).error?.message;
  } catch (error) {
    throw new Error(`plugin ${owner}: its schema cannot be used: ${messageOf(error)}`, {
      cause: undefined,
    });
  }
}
