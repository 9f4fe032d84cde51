/**
 * Checks that no single key can show: names that must exist or be unique, folders that must not be inside
 * each other, secrets that must exist.
 */
import { dirname, join, normalize, sep } from 'node:path';
import type { Config, ConfigProblem, Secrets, ShareConfig } from '../../contract/config.ts';
import { suggestion } from '../schema/did-you-mean.ts';
import { isTable } from '../../sdk/toml/document.ts';
import type { Document } from '../../sdk/toml/document.ts';
import { joinPath } from '../../sdk/toml/path.ts';
import type { Segment } from '../../sdk/toml/path.ts';
import { isCredentialName, isReference } from '../secrets/secrets.ts';
import type { SecretReference } from '../secrets/secrets.ts';
import { foldName } from '../schema/share-name.ts';
import { MASK, MASK_REFUSED } from '../../sdk/config-types.ts';

/** Suggesting a name takes time, and nobody reads more of these. */
const MOST_ORPHANS = 20;

export function crossProblems(config: Config, file: string): ConfigProblem[] {
  return [
    ...connectionNames(config),
    ...shareNames(config),
    ...mountPoints(config.shares),
    ...foldersBelowMounts(config, file),
  ];
}

function connectionNames(config: Config): ConfigProblem[] {
  const names = config.connections.map((connection) => connection.name);
  const known = new Set(names);
  const repeated = names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [{ path: `connections[${index}].name`, message: `there are two connections called "${name}"` }],
  );
  const orphans = config.shares
    .map((share, index) => ({ share, index }))
    .filter(({ share }) => !known.has(share.connection));
  const missing = orphans.slice(0, MOST_ORPHANS).map(({ share, index }) => ({
    path: `shares[${index}].connection`,
    message:
      `share "${share.name}" lies on the connection "${share.connection}", which does not ` +
      `exist${suggestion(share.connection, known)}`,
  }));
  return [...repeated, ...missing];
}

function shareNames(config: Config): ConfigProblem[] {
  const seen = new Map<string, string>();
  return config.shares.flatMap(({ name }, index) => {
    const folded = foldName(name);
    const other = seen.get(folded);
    seen.set(folded, other ?? name);
    if (other === undefined) return [];
    const message =
      other === name
        ? `there are two shares called "${name}"`
        : `the shares "${other}" and "${name}" differ in case only`;
    return [{ path: `shares[${index}].name`, message }];
  });
}

interface Placed {
  readonly name: string;
  readonly index: number;
  readonly folder: string;
}

function placed(shares: readonly ShareConfig[]): Placed[] {
  return shares.flatMap(({ name, mount_point }, index) =>
    mount_point === '' ? [] : [{ name, index, folder: asFolder(mount_point) }],
  );
}

/** With exactly one separator at the end, so that an ancestor is a prefix. */
function asFolder(path: string): string {
  return normalize(join(path, sep));
}

function mountPoints(shares: readonly ShareConfig[]): ConfigProblem[] {
  // Sorted, an ancestor comes before everything below it: one pass finds every conflict.
  const sorted = placed(shares).toSorted((a, b) => (a.folder < b.folder ? -1 : Number(a.folder > b.folder)));
  const problems: ConfigProblem[] = [];
  let outer: Placed | undefined;
  for (const inner of sorted) {
    if (outer !== undefined && inner.folder.startsWith(outer.folder)) {
      const relation =
        inner.folder === outer.folder ? 'the same mount point' : 'one mount point inside the other';
      problems.push({
        path: `shares[${inner.index}].mount_point`,
        message: `the shares "${outer.name}" and "${inner.name}" have ${relation}: ${outer.folder} and ${inner.folder}`,
      });
    } else {
      outer = inner;
    }
  }
  return problems;
}

/** The daemon itself uses these folders; below a mount they could hang it, or be hidden by the mount. */
function foldersBelowMounts(config: Config, file: string): ConfigProblem[] {
  const used: (readonly [key: string, path: string])[] = [
    ['cache.dir', config.cache.dir],
    ['supervisor.state_dir', config.supervisor.state_dir],
    ['log.file', config.log.file],
    ...config.plugins.dirs.map((folder, index) => [`plugins.dirs[${index}]`, folder] as const),
    ['the configuration file', file],
  ];
  return placed(config.shares).flatMap(({ name, index, folder }) =>
    used.flatMap(([key, path]) => {
      if (path === '') return [];
      const conflict = overlap(folder, asFolder(path), key);
      return conflict === undefined
        ? []
        : [
            {
              path: `shares[${index}].mount_point`,
              message: `the mount point of share "${name}" (${folder}) ${conflict}`,
            },
          ];
    }),
  );
}

function overlap(mountPoint: string, folder: string, key: string): string | undefined {
  if (folder.startsWith(mountPoint)) return `holds ${key}, which must not lie on the share`;
  const holdsFiles = key === 'cache.dir' || key === 'supervisor.state_dir';
  return holdsFiles && mountPoint.startsWith(folder) ? `lies inside ${key}` : undefined;
}

/**
 * References that cannot be resolved. A file on a share is not touched: it could hang the daemon. `isOffline`: of the
 * daemon's environment and credentials nothing is known here, so what is missing there is a warning.
 */
export function secretProblems(
  config: Config,
  { document, secrets, isOffline = false }: SecretChecks,
): ConfigProblem[] {
  const mounts = placed(config.shares).map(({ folder }) => folder);
  // One that is written nowhere is the default of a plugin's schema, which could keep the daemon from its start by it.
  const written = references(config, []).filter(({ path }) => isReference(valueAt(document, path)));
  return written.flatMap(({ path, reference }) => {
    const label = joinPath(path);
    const folder = 'file' in reference ? asFolder(dirname(reference.file)) : undefined;
    if (folder !== undefined && mounts.some((mount) => folder.startsWith(mount))) {
      return [{ path: label, message: `${label}: the secret's file must not lie on a share` }];
    }
    try {
      secrets.resolve(reference);
      return [];
    } catch (error) {
      const message = `${label}: ${(error as Error).message}`;
      if (!isOffline || !mayBeThere(reference)) return [{ path: label, message }];
      return [{ path: label, message: `${message}; the daemon may have it all the same`, isWarning: true }];
    }
  });
}

interface SecretChecks {
  /** As written. */
  readonly document: Document;
  readonly secrets: Secrets;
  readonly isOffline?: boolean | undefined;
}

function valueAt(document: Document, path: readonly Segment[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<Segment, unknown>)[key] : undefined,
    document,
  );
}

/** In the daemon's environment, or with its credentials. */
function mayBeThere(reference: SecretReference): boolean {
  return 'env' in reference || ('credential' in reference && isCredentialName(reference.credential));
}

function references(
  value: unknown,
  path: readonly Segment[],
): { path: readonly Segment[]; reference: SecretReference }[] {
  if (isReference(value)) return [{ path, reference: value }];
  if (Array.isArray(value))
    return value.flatMap((item: unknown, index) => references(item, [...path, index]));
  return isTable(value)
    ? Object.entries(value).flatMap(([key, item]) => references(item, [...path, key]))
    : [];
}

/**
 * Every place that holds the mask: it stands for a secret that the sender has never seen, and would
 * overwrite that secret.
 */
export function maskProblems(value: unknown, path: readonly Segment[] = []): ConfigProblem[] {
  if (value === MASK) {
    const label = joinPath(path);
    return [{ path: label, message: `${label} ${MASK_REFUSED}` }];
  }
  if (Array.isArray(value))
    return value.flatMap((item: unknown, index) => maskProblems(item, [...path, index]));
  return isTable(value)
    ? Object.entries(value).flatMap(([key, item]) => maskProblems(item, [...path, key]))
    : [];
}

/**
 * Texts over HTTP that begin with the mask and were not there: somebody typed behind it, and would set that as the
 * secret.
 */
export function typedBehindMask(
  value: unknown,
  before: unknown,
  path: readonly Segment[] = [],
): ConfigProblem[] {
  if (typeof value === 'string') {
    if (value === MASK || !value.startsWith(MASK) || value === before) return [];
    const label = joinPath(path);
    return [{ path: label, message: `${label} begins with the mask "${MASK}"; give the whole secret again` }];
  }
  if (Array.isArray(value))
    return value.flatMap((item: unknown, index) =>
      typedBehindMask(item, Array.isArray(before) ? before[index] : undefined, [...path, index]),
    );
  return isTable(value)
    ? Object.entries(value).flatMap(([key, item]) =>
        typedBehindMask(item, isTable(before) ? before[key] : undefined, [...path, key]),
      )
    : [];
}
