/**
 * The files that are generated from the schemas: a default and an example configuration, and the reference
 * page.
 */
import type { KeyNode } from '../core/config/schema/key-tree.ts';
import { listKeys } from '../core/config/schema/key-tree.ts';
import { renderDocument } from '../core/config/render.ts';
import { assemble } from '../core/config/schema/schema.ts';
import type { ContributionEntry } from '../core/config/schema/schema.ts';
import type { DeclaredKey } from '../core/config/schema/key-tree.ts';
import { referencePage } from './reference-page.ts';

const DEFAULT_HEAD =
  "# Mountkeeper's configuration with every default. example.toml shows connections and shares.\n\n";
const EXAMPLE_HEAD =
  '# An example: one NAS over SFTP with one share. Every other key stands commented out with its default.\n\n';

/** Keys of a share that are filled in when they are left out, or mean everybody: examples of them stay comments. */
const LEFT_OUT = new Set(['mount_point', 'protocols', 'users', 'read_only_users']);

/** Text by path below the package's folder. Throws when a plugin's keys cannot be joined with the others'. */
export function generatedFiles(entries: readonly ContributionEntry[]): ReadonlyMap<string, string> {
  const { root, rejected } = assemble(entries);
  if (rejected.length > 0) throw new Error(rejected.map(({ reason }) => reason).join('; '));
  const example = { connections: [exampleOf(root, 'connections')], shares: [exampleOf(root, 'shares')] };
  return new Map([
    ['config/default.toml', `${DEFAULT_HEAD}${renderDocument({ connections: [], shares: [] }, root)}`],
    ['config/example.toml', `${EXAMPLE_HEAD}${renderDocument(example, root)}`],
    ['docs/reference/config.md', referencePage(listKeys(root))],
  ]);
}

/** Every key of the document, in the order of the reference. */
export function configKeys(entries: readonly ContributionEntry[]): readonly DeclaredKey[] {
  return listKeys(assemble(entries).root);
}

/** One table of an array, with an example for every key that must be set or explains the table. */
function exampleOf(root: KeyNode, section: string): Record<string, unknown> {
  const children = [...(root.children.get(section)?.children ?? [])].filter(([key]) => !LEFT_OUT.has(key));
  return Object.fromEntries(
    children
      .filter(([, node]) => node.owner === 'core' && node.example !== undefined)
      .map(([key, node]) => [key, node.example]),
  );
}
