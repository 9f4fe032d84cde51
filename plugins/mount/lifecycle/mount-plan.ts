import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config, MountPlan, Secret, Secrets, ShareSpec } from 'mountkeeper';

/**
 * Options that identify the remote; all others only say how to reach it. Behind one address each port may
 * lead to another NAS.
 */
const IDENTIFYING = new Set([
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

/** A share's plan, with the marks that its cache has. */
export interface SharePlan {
  readonly mount: MountPlan;
  /** What dirty files belong to, wherever on the disk they wait: a cache may be moved. */
  readonly place: string;
  /** The same as caches were marked before they could be moved. */
  readonly formerPlace: string;
}

export interface Plans {
  /** Worked out once for each share of each configuration; secrets are read for it. Throws nothing. */
  of(spec: ShareSpec): SharePlan;
  /** Worked out anew, since a file with a secret may have changed: for each mount. */
  renewed(spec: ShareSpec): SharePlan;
}

export function createPlans(config: () => Config, secrets: Secrets): Plans {
  // Configurations and their shares are never changed, only replaced.
  const known = new WeakMap<object, { readonly from: readonly object[]; readonly share: SharePlan }>();
  const renewed = (spec: ShareSpec): SharePlan => {
    const now = config();
    const share = {
      mount: planMount(spec, now, secrets),
      place: remoteIdentity(spec, secrets),
      formerPlace: formerRemoteIdentity(spec, now, secrets),
    };
    known.set(spec.share, { from: [now, spec.connection], share });
    return share;
  };
  return {
    of: (spec) => {
      const last = known.get(spec.share);
      const isOfNow = last?.from[0] === config() && last.from[1] === spec.connection;
      return isOfNow ? last.share : renewed(spec);
    },
    renewed,
  };
}

export function cacheFolder(config: Config, shareName: string): string {
  return join(config.cache.dir, shareName);
}

/**
 * The plan by which a share is mounted once its cache is ready, which may have taken minutes: by the settings
 * of now. Throws when these lead elsewhere than the cache was made ready for.
 */
export function planReady(
  spec: ShareSpec,
  { place, cacheDir }: { readonly place: string; readonly cacheDir: string },
  { plans, config }: { readonly plans: Plans; readonly config: () => Config },
): MountPlan {
  const now = plans.renewed(spec);
  if (now.place !== place || cacheFolder(config(), spec.share.name) !== cacheDir)
    throw new Error(
      'the settings changed while the cache was made ready; the share is mounted by the new ones',
    );
  return now.mount;
}

/** Hash of the remote that dirty files belong to, wherever on the disk they wait: a cache may be moved. */
export function remoteIdentity(spec: ShareSpec, secrets: Secrets): string {
  return digest(['place', spec.connection.type, identifying(options(spec, secrets)), spec.share.remote_path]);
}

/** As caches were marked before they could be moved. */
function formerRemoteIdentity(spec: ShareSpec, config: Config, secrets: Secrets): string {
  const withoutPort = identifying(options(spec, secrets)).filter(([name]) => name !== 'port');
  return digest([
    spec.connection.type,
    withoutPort,
    spec.share.remote_path,
    cacheFolder(config, spec.share.name),
  ]);
}

type Options = ReadonlyMap<string, string>;

function identifying(options: Options): readonly (readonly [string, string])[] {
  return [...options].filter(([name]) => IDENTIFYING.has(name));
}

/** Fingerprint and identity of a mount. They are hashes, so the secrets in them cannot be read back. */
export function planMount(spec: ShareSpec, config: Config, secrets: Secrets): MountPlan {
  const { share, connection } = spec;
  const resolved = options(spec, secrets);
  const identity = digest([
    connection.type,
    identifying(resolved),
    share.remote_path,
    cacheFolder(config, share.name),
    // Tells it from mounts of a former version, whose rclone took the writes.
    'write layer',
  ]);
  // Where other builds of rclone come from, and when mounts take them, changes no mount.
  const { rclone_mirror: _, rclone_proxy: __, rclone_renew_after: ___, ...mount } = config.mount;
  const fingerprint = digest([
    identity,
    connection.type,
    [...resolved],
    share.mount_point,
    share.read_only,
    mount,
    config.cache,
    // Included only when it is on, so that mounts of a daemon without this option are adopted.
    ...(share.exec === true ? ['exec'] : []),
  ]);
  return { mountPoint: share.mount_point, identity, fingerprint };
}

/**
 * A secret that cannot be resolved now counts as its reference: a plan can always be made, and the mount
 * then reports what is missing.
 */
function options(spec: ShareSpec, secrets: Secrets): Options {
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
    // A reference that leads nowhere stands for itself: the fingerprint changes once it leads somewhere.
    return JSON.stringify(secret);
  }
}

function digest(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
