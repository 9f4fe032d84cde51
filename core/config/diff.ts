/**
 * The difference between two completed documents: every changed path with its tier, and a readable summary
 * with secrets masked.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ChangeTier, Config, ConfigChange, ConfigDiff } from '../contract/config.ts';
import { isTable } from '../sdk/toml/document.ts';
import type { Document } from '../sdk/toml/document.ts';
import type { KeyNode } from './schema/key-tree.ts';
import { joinPath } from '../sdk/toml/path.ts';
import type { Segment } from '../sdk/toml/path.ts';
import type { Assembly } from './schema/schema.ts';
import { maskSecrets, secretPaths } from './secrets/secret-paths.ts';
import type { SecretPaths } from './secrets/secret-paths.ts';
import { summarize } from './summary.ts';

const TIERS: readonly ChangeTier[] = ['live', 'protocol', 'per-share', 'global', 'restart'];

/** One side of a comparison: a value, and its path in its own document. */
interface Side {
  readonly value: unknown;
  readonly at: readonly Segment[];
  readonly secrets: SecretPaths;
}
interface Place {
  readonly path: readonly Segment[];
  readonly node: KeyNode | undefined;
  readonly tier: ChangeTier;
  readonly entry: boolean;
}

export const NO_DIFFERENCE: ConfigDiff = Object.freeze({
  changes: Object.freeze([]),
  tier: undefined,
  summary: 'No changes',
});

export function diffConfig(
  before: Config,
  after: Config,
  assembly: Pick<Assembly, 'root' | 'entries'>,
): ConfigDiff {
  const changes = compare(
    { value: before, at: [], secrets: secretPaths(before, assembly) },
    { value: after, at: [], secrets: secretPaths(after, assembly) },
    { path: [], node: assembly.root, tier: 'live', entry: false },
  );
  if (changes.length === 0) return NO_DIFFERENCE;
  const tier = TIERS.findLast((candidate) => changes.some((change) => change.tier === candidate));
  return { changes, tier, summary: summarize(changes) };
}

function compare(before: Side, after: Side, place: Place): ConfigChange[] {
  if (isDeepStrictEqual(before.value, after.value)) return [];
  if (isNamedTables(place.node) && hasUniqueNames(before.value) && hasUniqueNames(after.value))
    return compareNamed(before, after, place);
  if (isTable(before.value) && isTable(after.value)) return compareTables(before, after, place);
  return [change(before, after, place)];
}

function change(before: Side, after: Side, { path, node, tier, entry }: Place): ConfigChange {
  const isEntry = entry || [before, after].some(({ value }) => holdsEntry(value, node));
  return { path: joinPath(path), tier, isEntry, before: shown(before), after: shown(after) };
}

/** Whether a key in a table that is new, or gone, says who may enter. */
function holdsEntry(value: unknown, node: KeyNode | undefined): boolean {
  if (node === undefined) return false;
  if (Array.isArray(value)) return value.some((item) => holdsEntry(item, { ...node, kind: 'table' }));
  return (
    isTable(value) && [...node.children].some(([name, child]) => child.entry && value[name] !== undefined)
  );
}

function shown({ value, at, secrets }: Side): unknown {
  return maskSecrets(value, secrets, at);
}

function compareTables(before: Side, after: Side, place: Place): ConfigChange[] {
  const keys = new Set([...Object.keys(before.value as Document), ...Object.keys(after.value as Document)]);
  return [...keys].flatMap((key) =>
    compare(below(before, key), below(after, key), inside(place, key, place.node?.children.get(key))),
  );
}

function below(side: Side, key: Segment): Side {
  const value = (side.value as Record<Segment, unknown>)[key];
  return { value, at: [...side.at, key], secrets: side.secrets };
}

function inside(place: Place, key: string, node: KeyNode | undefined): Place {
  const { tier, entry } = node ?? place;
  return { path: [...place.path, key], node, tier, entry };
}

function isNamedTables(node: KeyNode | undefined): boolean {
  return node?.kind === 'tables' && node.children.has('name');
}

function hasUniqueNames(value: unknown): value is { name: string }[] {
  if (!Array.isArray(value)) return false;
  const names = value.map((item: unknown) => (isTable(item) ? item['name'] : undefined));
  return names.every((name) => typeof name === 'string') && new Set(names).size === names.length;
}

/** Tables are matched by name, so that inserting one does not change all that follow. */
function compareNamed(before: Side, after: Side, place: Place): ConfigChange[] {
  const old = byName(before);
  const next = byName(after);
  const names = new Set([...old.keys(), ...next.keys()]);
  const found = [...names].flatMap((name) => {
    const from = old.get(name);
    const to = next.get(name);
    // The node describes each of the tables, no longer the array.
    const each = inside(place, name, place.node && { ...place.node, kind: 'table' });
    if (from !== undefined && to !== undefined) return compare(from, to, each);
    const nothing: Side = { value: undefined, at: [], secrets: new Set() };
    return [change(from ?? nothing, to ?? nothing, each)];
  });
  if (found.length > 0) return found;
  // Their order alone.
  const [path, tier, isEntry] = [joinPath(place.path), 'live', false] as const;
  return [{ path, tier, isEntry, before: [...old.keys()], after: [...next.keys()] }];
}

function byName(side: Side): Map<string, Side> {
  return new Map((side.value as { name: string }[]).map((item, index) => [item.name, below(side, index)]));
}
