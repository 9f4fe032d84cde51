import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config, MountPlan, Secret, Secrets, ShareSpec } from 'mountkeeper';

/**
 * Options that name the place itself; all others are ways to get there. Behind one address each port may lead
 * to another NAS.
 */
const PLACE = new Set([
  'host',
  'port',
  'url',
  'endpoint',
  'remote',
  'upstreams',
  'user',
  'username',
  'account',
  'account_id',
  'domain',
  'provider',
  'region',
  'bucket',
  'auth',
  'storage_url',
  'user_id',
  'tenant_id',
  'tenant_domain',
  'namenode',
  'root_folder_id',
  'team_drive',
  'drive_id',
  'site_id',
  'tenant',
  'storage_zone',
]);

export function cacheFolder(config: Config, shareName: string): string {
  return join(config.cache.dir, shareName);
}

/** What dirty files belong to, wherever on the disk they wait: a cache may be moved. */
export function placeOf(spec: ShareSpec, secrets: Secrets): string {
  return digest(['place', spec.connection.type, placeOptions(spec, secrets), spec.share.remote_path]);
}

/** As caches were marked before they could be moved. */
export function formerPlaceOf(spec: ShareSpec, config: Config, secrets: Secrets): string {
  const withoutPort = placeOptions(spec, secrets).filter(([name]) => name !== 'port');
  return digest([
    spec.connection.type,
    withoutPort,
    spec.share.remote_path,
    cacheFolder(config, spec.share.name),
  ]);
}

function identityOf(spec: ShareSpec, config: Config, secrets: Secrets): string {
  const parts: unknown[] = [
    spec.connection.type,
    placeOptions(spec, secrets),
    spec.share.remote_path,
    cacheFolder(config, spec.share.name),
  ];
  // What waits in rclone's cache and what waits in the write layer must each go up before the other takes
  // over.
  return digest(config.mount.write_layer ? [...parts, 'write layer'] : parts);
}

/** A mount of a version that knew no write layer goes on as it is. */
function mountOptions({ mount: { write_layer: isLayered, ...others } }: Config): object {
  return isLayered ? { ...others, write_layer: true } : others;
}

function placeOptions(spec: ShareSpec, secrets: Secrets): readonly (readonly [string, string])[] {
  return [...options(spec, secrets)].filter(([name]) => PLACE.has(name));
}

/** Everything the mount depends on. A hash: the secrets in it cannot be read back. */
export function planMount(spec: ShareSpec, config: Config, secrets: Secrets): MountPlan {
  const { share, connection } = spec;
  const identity = identityOf(spec, config, secrets);
  return {
    mountPoint: share.mount_point,
    identity,
    // `exec` stands in it only where it is on: mounts of a daemon that did not know it are adopted.
    fingerprint: digest([
      identity,
      connection.type,
      [...options(spec, secrets)],
      share.mount_point,
      share.read_only,
      mountOptions(config),
      config.cache,
      ...(share.exec === true ? ['exec'] : []),
    ]),
  };
}

/**
 * A secret that cannot be had now counts as its reference: a plan can always be made, the mount then says
 * what is missing.
 */
function options(spec: ShareSpec, secrets: Secrets): ReadonlyMap<string, string> {
  const sorted = Object.entries(spec.connection.options ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(
    sorted.map(([name, value]) => [
      name,
      typeof value === 'object' ? resolved(value, secrets) : String(value),
    ]),
  );
}

function resolved(secret: Secret, secrets: Secrets): string {
  try {
    return secrets.resolve(secret);
  } catch {
    return JSON.stringify(secret);
  }
}

function digest(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
