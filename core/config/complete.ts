/** Completes a validated document: absolute paths, and the defaults that plugins derive from other keys. */
import { resolve } from 'node:path';
import type { Config } from '../api.ts';
import type { ConfigProblem } from '../services.ts';
import { copy, isTable } from './document.ts';
import type { KeyNode } from './key-tree.ts';
import type { Assembly } from './schema.ts';
import { isReference } from './secrets.ts';

export interface Completed { readonly config: Config; readonly problems: readonly ConfigProblem[] }

/** `validated` is changed in place; `folder` is the one that relative paths start from. */
export function complete(validated: Record<string, unknown>, assembly: Assembly, folder: string): Completed {
  let config = absolutePaths(validated, assembly.root, folder) as Config;
  const problems: ConfigProblem[] = [];
  for (const { owner, contribution } of assembly.entries) {
    if (contribution.complete === undefined) continue;
    const draft = copy(config);
    try {
      contribution.complete(draft);
      config = draft;
    } catch (error) {
      problems.push({ message: `plugin ${owner} could not fill in its defaults: ${(error as Error).message}` });
    }
  }
  for (const share of config.shares) share.mount_point ??= '';
  return { config, problems };
}

function absolutePaths(value: unknown, node: KeyNode | undefined, folder: string): unknown {
  if (typeof value === 'string') return node?.type === 'path' && value !== '' ? resolve(folder, value) : value;
  if (isReference(value)) return 'file' in value ? { file: resolve(folder, value.file) } : value;
  if (Array.isArray(value)) return value.map((item: unknown) => absolutePaths(item, itemNode(node), folder));
  return isTable(value) ? absoluteTable(value, node, folder) : value;
}

function itemNode(node: KeyNode | undefined): KeyNode | undefined {
  if (node?.kind === 'tables') return node;
  return node?.type.startsWith('array of path') === true ? { ...node, type: 'path' } : undefined;
}

/** Keys in the schema's order, so that the order of writing is no difference; undeclared ones follow. */
function absoluteTable(table: Record<string, unknown>, node: KeyNode | undefined, folder: string): Record<string, unknown> {
  const keys = new Set([...(node?.children.keys() ?? []), ...Object.keys(table)]);
  const present = [...keys].filter((key) => Object.hasOwn(table, key));
  return Object.fromEntries(present.map((key) => [key, absolutePaths(table[key], node?.children.get(key), folder)]));
}
