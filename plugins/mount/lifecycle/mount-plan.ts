import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config, MountPlan, Secret, Secrets, ShareSpec } from 'mountkeeper';
import { formerPlaceOptions, placeOptions } from '../options/place-options.ts';

/** A share's plan, with the marks that its cache has. */
export interface SharePlan {
  readonly mount: MountPlan;
  /** What dirty files belong to, wherever on the disk they wait: a cache may be moved. */
  readonly place: string;
  /** The same as caches were marked before they could be moved. */
  readonly formerPlace: string;
  /**
   * What versions made of it that left out some options which say where a connection leads. Undefined without such
   * an option, as the names are the same then.
   */
  readonly lesser?: { readonly mount: MountPlan; readonly place: string } | undefined;
}

/** Why no rclone is started: what was written for one NAS must not go to another. */
export class LeadsElsewhere extends Error {
  override readonly name = 'LeadsElsewhere';

  constructor() {
    super(
      'the share leads elsewhere by now, as its settings or a secret that they refer to changed: what was written ' +
        'here goes up once the former value is back, or is set aside by `mountkeeper reconnect`; once nothing waits, ' +
        'the share is mounted again by itself',
    );
  }
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
    const share = planShare(spec, now, options(spec, secrets));
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

/** Undefined when the configuration does not have the share any more. */
export function specOf(shareName: string, { shares, connections }: Config): ShareSpec | undefined {
  const share = shares.find(({ name }) => name === shareName);
  const connection = connections.find(({ name }) => name === share?.connection);
  return share && connection && { share, connection };
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

/** With the secrets that the options refer to read now, once. */
function planShare(spec: ShareSpec, config: Config, resolved: Options): SharePlan {
  const [all, lesser] = [placeOptions(resolved), formerPlaceOptions(resolved)];
  return {
    mount: planBy(spec, config, { resolved, leading: all }),
    place: place(spec, all),
    formerPlace: formerPlace(spec, config, lesser),
    lesser:
      digest(all) === digest(lesser)
        ? undefined
        : { mount: planBy(spec, config, { resolved, leading: lesser }), place: place(spec, lesser) },
  };
}

/** Hash of the remote that dirty files belong to, wherever on the disk they wait: a cache may be moved. */
export function remoteIdentity(spec: ShareSpec, secrets: Secrets): string {
  return place(spec, placeOptions(options(spec, secrets)));
}

type Options = ReadonlyMap<string, string>;
/** Options that say where a connection leads, with their values. */
type Leading = ReturnType<typeof placeOptions>;

function place({ connection, share }: ShareSpec, leading: Leading): string {
  return digest(['place', connection.type, leading, share.remote_path]);
}

/** As caches were marked before they could be moved. */
function formerPlace({ connection, share }: ShareSpec, config: Config, leading: Leading): string {
  const withoutPort = leading.filter(([name]) => name !== 'port');
  return digest([connection.type, withoutPort, share.remote_path, cacheFolder(config, share.name)]);
}

function identityOf({ connection, share }: ShareSpec, leading: Leading, cacheDir: string): string {
  return digest([
    connection.type,
    leading,
    share.remote_path,
    cacheDir,
    // Tells it from mounts of a former version, whose rclone took the writes.
    'write layer',
  ]);
}

/**
 * Throws `LeadsElsewhere` where these options, with the secrets that are handed to rclone, lead to another place than
 * the mount was planned for: what a secret refers to may have changed since.
 */
export function requireSamePlace(
  spec: ShareSpec,
  clear: Options,
  { plan, cacheDir }: { readonly plan: MountPlan; readonly cacheDir: string },
): void {
  if (identityOf(spec, placeOptions(clear), cacheDir) !== plan.identity) throw new LeadsElsewhere();
}

/** Fingerprint and identity of a mount. They are hashes, so the secrets in them cannot be read back. */
export function planMount(spec: ShareSpec, config: Config, secrets: Secrets): MountPlan {
  return planShare(spec, config, options(spec, secrets)).mount;
}

function planBy(
  spec: ShareSpec,
  config: Config,
  { resolved, leading }: { readonly resolved: Options; readonly leading: Leading },
): MountPlan {
  const { share, connection } = spec;
  const identity = identityOf(spec, leading, cacheFolder(config, share.name));
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
  return { mountPoint: share.mount_point, identity, place: place(spec, leading), fingerprint };
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
