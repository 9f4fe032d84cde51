/**
 * Fields of the status that the API's objects do not have, by the plugin that gives them. They have answers of
 * their own, so that those objects keep exactly their fields.
 */
import type { ShareStatus, Snapshot, StatusOwners } from 'mountkeeper';

/** Fields by name, as the plugin spells them. */
export type Extension = Readonly<Record<string, unknown>>;

export interface ExtensionsView {
  /** By plugin; only plugins that are up and give such fields. */
  readonly extensions: Readonly<Record<string, Extension>>;
}

/** Of the record, what `GET /api/status` tells in its own words. */
const TOLD = new Set([
  'startedAt',
  'shares',
  'allSynced',
  'smbdRunning',
  'webdavRunning',
  'nfsExported',
  'warmup',
  'nasOffline',
]);
const TOLD_OF_SHARE = new Set([
  'name',
  'mounted',
  'rcPort',
  'cacheBytes',
  'dirtyCount',
  'isDirtyCountUnknown',
  'isLeaving',
  'erroredFiles',
  'speed',
  'transfers',
  'errors',
  'health',
  'healthMessage',
  'warmupState',
  'warmupDone',
  'warmupTotal',
  'dirRefreshActive',
  'lastDirRefreshAt',
  'lastDirRefreshDirsOk',
  'lastDirRefreshDirsFailed',
]);

export function extensionsView({ record }: Snapshot, { daemon }: StatusOwners): ExtensionsView {
  return { extensions: byPlugin(record, TOLD, daemon) };
}

export function shareExtensionsView(status: ShareStatus, { share }: StatusOwners): ExtensionsView {
  return { extensions: byPlugin(status, TOLD_OF_SHARE, share) };
}

function byPlugin(
  fields: object,
  told: ReadonlySet<string>,
  owners: ReadonlyMap<string, string>,
): Record<string, Extension> {
  const plugins = new Map<string, [field: string, value: unknown][]>();
  for (const [field, value] of Object.entries(fields)) {
    const plugin = told.has(field) ? undefined : owners.get(field);
    if (plugin === undefined) continue;
    plugins.set(plugin, [...(plugins.get(plugin) ?? []), [field, value]]);
  }
  const sorted = [...plugins].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([plugin, own]) => [plugin, Object.fromEntries(own)]));
}
