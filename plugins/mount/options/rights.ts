/**
 * What a mount's rclone is left with beside a daemon that is root: it reads what the NAS sends. `fusermount3`, which it
 * starts, mounts and unmounts by its bounding set.
 */
import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { rootWith } from 'mountkeeper';
import type { ConnectionConfig, ProcessRights, Processes } from 'mountkeeper';
import { treesOf } from '../cache/metadata.ts';

const MOUNTS = ['sys_admin'];
/**
 * Below a write layer: it sends what lies in the upper folder, which may be somebody's by `cp -a`, through a descriptor
 * of the daemon's, who has capabilities that it has not.
 */
const SENDS = ['sys_ptrace', 'dac_read_search'];
/** To read, write and date the files of others. */
const OTHERS_FILES = ['dac_override', 'fowner'];

/** Backends whose files may lie on this machine. */
const LOCAL: ReadonlySet<string> = new Set(
  'local alias union combine crypt chunker compress hasher cache archive'.split(' '),
);
/** Options that name a program, whose needs nobody here knows. */
const PROGRAM = /^ssh$|_command$/;
const PATH = /^(?:~\/|\/)/;

/** Of one that only asks the remote: it may read a key in a home. */
export function readerCapabilities({ options }: ConnectionConfig): readonly string[] | undefined {
  return Object.keys(options ?? {}).some((name) => PROGRAM.test(name)) ? undefined : ['dac_read_search'];
}

export interface RcloneReach {
  readonly processes: Pick<Processes, 'run'>;
  readonly connection: ConnectionConfig;
  /** The connection's options, with secrets. */
  readonly options: ReadonlyMap<string, string>;
  /** There already. */
  readonly cacheDir: string;
  /** Absolute paths that it reads: program, configuration, mount point. */
  readonly files: readonly string[];
  /** Below a write layer. */
  readonly isLower: boolean;
}

/** Undefined: as the daemon, which is not root, or may take nothing away. */
export async function rcloneRights(reach: RcloneReach): Promise<ProcessRights | undefined> {
  const { processes, isLower } = reach;
  const capabilities = isLower ? [...MOUNTS, ...SENDS] : MOUNTS;
  const alone = await onRootsFiles(reach, capabilities);
  return alone ?? rootWith({ processes, capabilities: [...capabilities, ...OTHERS_FILES] });
}

/** Undefined where it works on files that are not root's: a cache that was another user's, a key in a home. */
async function onRootsFiles(
  reach: RcloneReach,
  capabilities: readonly string[],
): Promise<ProcessRights | undefined> {
  const { processes, connection, options, cacheDir, files } = reach;
  const names = [...options.keys()];
  if (LOCAL.has(connection.type) || names.some((name) => PROGRAM.test(name))) return undefined;
  const owner = await ownerOf(cacheDir);
  if (owner !== 0) return undefined;
  const trees = Object.values(treesOf(cacheDir));
  const ownFolders = [];
  for (const tree of trees) if ((await ownerOf(tree)) !== undefined) ownFolders.push(tree);
  const named = [...options.values()].filter((value) => PATH.test(value)).map(fromHome);
  return rootWith({ processes, capabilities, files: [...files, cacheDir, ...named], ownFolders });
}

/** Undefined for what is not there. */
async function ownerOf(path: string): Promise<number | undefined> {
  return lstat(path).then(
    ({ uid }) => uid,
    () => undefined,
  );
}

function fromHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}
