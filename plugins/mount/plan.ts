import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config, MountPlan, Secrets, ShareSpec } from 'mountkeeper';
import { clearOptions } from './remote-config.ts';

/** Options that name the place itself; all others are ways to get there. */
const PLACE = new Set([
  'host', 'url', 'endpoint', 'remote', 'upstreams', 'user', 'username', 'account', 'account_id', 'domain', 'provider', 'region', 'bucket',
  'namenode', 'root_folder_id', 'team_drive', 'drive_id', 'site_id', 'tenant', 'storage_zone',
]);

export function cacheFolder(config: Config, shareName: string): string {
  return join(config.cache.dir, shareName);
}

export function identityOf(spec: ShareSpec, config: Config, secrets: Secrets): string {
  const place = [...options(spec, secrets)].filter(([name]) => PLACE.has(name));
  return digest([spec.connection.type, place, spec.share.remote_path, cacheFolder(config, spec.share.name)]);
}

/** Everything the mount depends on. A hash: the secrets in it cannot be read back. */
export function planMount(spec: ShareSpec, config: Config, secrets: Secrets): MountPlan {
  const { share, connection } = spec;
  const identity = identityOf(spec, config, secrets);
  return {
    mountPoint: share.mount_point,
    identity,
    fingerprint: digest([identity, connection.type, [...options(spec, secrets)], share.mount_point, share.read_only, config.mount, config.cache]),
  };
}

/** A secret that cannot be had now counts as its reference: a plan can always be made, the mount then says what is missing. */
function options(spec: ShareSpec, secrets: Secrets): ReadonlyMap<string, string> {
  const sorted = { ...spec.connection, options: Object.fromEntries(Object.entries(spec.connection.options ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) };
  try {
    return clearOptions(sorted, secrets);
  } catch {
    return new Map(Object.entries(sorted.options).map(([name, value]) => [name, JSON.stringify(value)]));
  }
}

function digest(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
