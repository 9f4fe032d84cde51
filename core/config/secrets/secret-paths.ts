/**
 * Decides which values of a document are secret: those that the schema marks, references, and values that
 * no schema knows, unless a plugin declares them harmless. A backend may have secrets under any option
 * name, and a plugin that is not installed cannot say.
 */
import type { Config } from '../../contract/config.ts';
import { isTable } from '../../sdk/toml/document.ts';
import type { KeyNode } from '../schema/key-tree.ts';
import { splitPath } from '../../sdk/toml/path.ts';
import type { Segment } from '../../sdk/toml/path.ts';
import type { Assembly } from '../schema/schema.ts';
import { isReference } from './secrets.ts';
import { MASK } from '../../sdk/config-types.ts';

/** Paths of the secret values of one document, each as the JSON text of its segments. */
export type SecretPaths = ReadonlySet<string>;

/** A text longer than any address or option list may be a key or a certificate. */
const LONGEST_PLAIN_TEXT = 4_096;
const USER_INFO = /:\/\/[^/\s@]{1,512}@/;

/** Of a document that nobody has checked, too. */
export function secretPaths(config: Config, assembly: Pick<Assembly, 'root' | 'entries'>): SecretPaths {
  const found = new Set<string>();
  const vouched = new Set([
    ...members(config),
    ...assembly.entries.flatMap(({ contribution }) =>
      namedByPlugin(contribution.harmless, config).map((path) => key(withIndices(config, splitPath(path)))),
    ),
  ]);
  collect({ value: config, node: assembly.root, segments: [] }, vouched, found);
  return found;
}

/** Names of users are shown wherever they stand. */
function members({ groups = {} }: Config): string[] {
  return Object.entries(groups).flatMap(([group, users]) =>
    Array.isArray(users) ? users.map((_, index) => key(['groups', group, index])) : [],
  );
}

export function isSecretPath(paths: SecretPaths, segments: readonly Segment[]): boolean {
  return paths.has(key(segments));
}

/** A copy in which every secret that is set is masked. */
export function maskSecrets(value: unknown, paths: SecretPaths, segments: readonly Segment[] = []): unknown {
  if (isSecretPath(paths, segments)) return value === '' || value === undefined ? value : MASK;
  if (Array.isArray(value))
    return value.map((item: unknown, index) => maskSecrets(item, paths, [...segments, index]));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, maskSecrets(item, paths, [...segments, name])]),
  );
}

function key(segments: readonly Segment[]): string {
  return JSON.stringify(segments);
}

interface Place {
  readonly value: unknown;
  readonly node: KeyNode | undefined;
  readonly segments: readonly Segment[];
}

function collect(place: Place, vouched: ReadonlySet<string>, found: Set<string>): void {
  const { value, node, segments } = place;
  if (isSecretValue(place, vouched)) found.add(key(segments));
  else if (Array.isArray(value)) {
    // Items are as trusted as their array; tables in it only when they have a schema.
    value.forEach((item: unknown, index) => {
      const known = node?.kind === 'tables' || !isTable(item) ? node : undefined;
      collect({ value: item, node: known, segments: [...segments, index] }, vouched, found);
    });
  } else if (isTable(value)) {
    for (const [child, item] of Object.entries(value)) {
      collect(
        { value: item, node: node?.children.get(child), segments: [...segments, child] },
        vouched,
        found,
      );
    }
  }
}

function isSecretValue({ value, node, segments }: Place, vouched: ReadonlySet<string>): boolean {
  if (isReference(value)) return true;
  if (node !== undefined) return node.secret;
  return isText(value) && !(vouched.has(key(segments)) && isPlain(value));
}

function isText(value: unknown): value is string | number | bigint {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
}

/** A value that a plugin declares harmless may still contain a password. */
function isPlain(value: string | number | bigint): boolean {
  return typeof value !== 'string' || (value.length <= LONGEST_PLAIN_TEXT && !USER_INFO.test(value));
}

function namedByPlugin(
  harmless: ((config: Config) => readonly string[]) | undefined,
  config: Config,
): readonly string[] {
  try {
    return harmless?.(config) ?? [];
  } catch {
    // A plugin that throws here declares nothing harmless.
    return [];
  }
}

/** `connections.nas.options` names an item of an array by its name; this replaces the name by the index. */
function withIndices(config: unknown, segments: readonly Segment[]): Segment[] {
  let value = config;
  return segments.map((segment) => {
    const index =
      Array.isArray(value) && typeof segment === 'string'
        ? value.findIndex((item) => isTable(item) && item['name'] === segment)
        : -1;
    const resolved = index >= 0 ? index : segment;
    value = (value as Record<Segment, unknown> | undefined)?.[resolved];
    return resolved;
  });
}
