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

/** Keys in the schema's order, so that the order of writing is no difference; undeclared ones follow. */
function absolutePaths(value: unknown, node: KeyNode | undefined, folder: string): unknown {
  if (node?.type === 'path' && typeof value === 'string') return value === '' ? '' : resolve(folder, value);
  if (isReference(value) && 'file' in value) return { file: resolve(folder, value.file) };
  if (Array.isArray(value)) {
    const ofPaths = node?.type.startsWith('array of path') === true;
    return value.map((item: unknown) => (ofPaths && typeof item === 'string' ? resolve(folder, item) : absolutePaths(item, node?.kind === 'tables' ? node : undefined, folder)));
  }
  if (!isTable(value)) return value;
  const keys = new Set([...(node?.children.keys() ?? []), ...Object.keys(value)]);
  return Object.fromEntries([...keys].filter((key) => Object.hasOwn(value, key)).map((key) => [key, absolutePaths(value[key], node?.children.get(key), folder)]));
}
