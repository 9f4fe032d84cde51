/** Which values of a document are secret: by the schema's mark, by what plugins say, by references, and else by their names. */
import type { Config } from '../api.ts';
import { isTable } from './document.ts';
import type { KeyNode } from './key-tree.ts';
import { splitPath } from './path.ts';
import type { Segment } from './path.ts';
import type { Assembly } from './schema.ts';
import { isReference } from './secrets.ts';
import { MASK } from './types.ts';

/** Secret places of one document, each as the JSON text of its segments. */
export type SecretPaths = ReadonlySet<string>;

const SECRET_NAME = /pass|secret|token|credential|bearer|cookie|private_?key|key_?pem|api_?key|account_?key|sas_url|(^|[_-])(key|pin|auth)$/i;
const HARMLESS_NAME = /_(file|id|path|type|name|method|size|exchange|agent|command)$|token_url$|auth_url$/i;
/** A longer text than any address or option list is taken for a key or a certificate. */
const LONGEST_PLAIN_TEXT = 4_096;
const SECRET_TEXT = /:\/\/[^/\s:@]*:[^/\s@]+@|(^|[,?&;:])\s*\w*(pass|secret|token|key)\w*=/i;

export function secretPaths(config: Config, assembly: Pick<Assembly, 'root' | 'entries'>): SecretPaths {
  const found = new Set<string>();
  collect(config, assembly.root, [], found);
  for (const { contribution } of assembly.entries) {
    for (const path of namedByPlugin(contribution.secrets, config)) found.add(key(withIndices(config, splitPath(path))));
  }
  return found;
}

export function isSecretPath(paths: SecretPaths, segments: readonly Segment[]): boolean {
  return paths.has(key(segments));
}

/** A copy in which every secret that is set reads as the mask. */
export function maskSecrets(value: unknown, paths: SecretPaths, segments: readonly Segment[] = []): unknown {
  if (isSecretPath(paths, segments)) return value === '' || value === undefined ? value : MASK;
  if (Array.isArray(value)) return value.map((item: unknown, index) => maskSecrets(item, paths, [...segments, index]));
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, maskSecrets(item, paths, [...segments, name])]));
}

function key(segments: readonly Segment[]): string {
  return JSON.stringify(segments);
}

function collect(value: unknown, node: KeyNode | undefined, segments: readonly Segment[], found: Set<string>): void {
  if (isSecretValue(value, node, segments)) found.add(key(segments));
  else if (Array.isArray(value)) value.forEach((item, index) => { collect(item, node?.kind === 'tables' ? node : undefined, [...segments, index], found); });
  else if (isTable(value)) {
    for (const [child, item] of Object.entries(value)) collect(item, node?.children.get(child), [...segments, child], found);
  }
}

function isSecretValue(value: unknown, node: KeyNode | undefined, segments: readonly Segment[]): boolean {
  if (node !== undefined) return node.secret || isReference(value);
  const name = segments.findLast((segment) => typeof segment === 'string');
  return isReference(value) || looksSecret(String(name), value);
}

/** For keys that no schema knows, such as a backend's options. */
function looksSecret(name: string, value: unknown): boolean {
  if (typeof value !== 'string' && typeof value !== 'number') return false;
  if (SECRET_NAME.test(name) && !HARMLESS_NAME.test(name)) return true;
  return typeof value === 'string' && (value.length > LONGEST_PLAIN_TEXT || SECRET_TEXT.test(value));
}

function namedByPlugin(secrets: ((config: Config) => readonly string[]) | undefined, config: Config): readonly string[] {
  try {
    return secrets?.(config) ?? [];
  } catch {
    // The names still tell; a plugin that fails here must not show anything more.
    return [];
  }
}

/** `connections.nas.options` names a table of an array by its name; here its index is put. */
function withIndices(config: unknown, segments: readonly Segment[]): Segment[] {
  let value = config;
  return segments.map((segment) => {
    const index = Array.isArray(value) && typeof segment === 'string' ? value.findIndex((item) => isTable(item) && item['name'] === segment) : -1;
    const resolved = index >= 0 ? index : segment;
    value = (value as Record<Segment, unknown> | undefined)?.[resolved];
    return resolved;
  });
}
