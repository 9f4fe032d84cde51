import { dirname } from 'node:path';
import { formatBytes, sizeBytes } from 'mountkeeper';
import type { Check, Config, MountTable, Processes } from 'mountkeeper';
import { turnableMountPoints } from './lifecycle/passage.ts';
import { fuseProblem, userAllowOther } from './lifecycle/fuse-access.ts';
import { refuseForeignCache } from './cache/foreign-cache.ts';
import { freeBytes } from './cache/free-bytes.ts';
import { holderOf } from './cache/file-system.ts';
import { bindfsProblem, diskProblem, isLayered } from './layer/needs.ts';
import { checksNoHostKey } from './options/host-keys.ts';
import { locate } from './rclone/installed.ts';
import type { RcloneFinder } from './rclone/installed.ts';
import { rcloneToRun } from './releases/chosen.ts';
import { KNOWN_GOOD, gainsOver, versionIn, versionName } from './releases/versions.ts';
import { tcpConnectionsCheck } from './outage/tcp-connections-check.ts';

export async function checks(
  config: Config,
  finder: RcloneFinder,
  mountTable: MountTable,
  processes: Processes,
): Promise<readonly Check[]> {
  const onThisMachine = [
    await fuseCheck(),
    ...(await otherUsersCheck()),
    await writingCheck(config, mountTable),
    await cacheCheck(config, mountTable),
    await rootCheck(config, mountTable),
    ...(await mountPointsCheck(config, processes)),
    ...hostKeysCheck(config),
  ];
  return [await rcloneCheck(config, finder), ...onThisMachine, await tcpConnectionsCheck(processes)];
}

async function rcloneCheck(config: Config, finder: RcloneFinder): Promise<Check> {
  const title = 'rclone';
  try {
    const command = rcloneToRun(config.mount, config.supervisor.state_dir);
    const { version } = await finder.find(command);
    const gains = gainsOver(versionIn(version) ?? KNOWN_GOOD);
    return {
      title,
      result: gains.length > 0 ? 'warning' : 'ok',
      detail: `${version} (${command})`,
      advice:
        gains.length > 0
          ? `It works. \`mountkeeper rclone install\` gets ${versionName(KNOWN_GOOD)} or newer. ` +
            `What one gains: ${gains.join('; ')}.`
          : '',
    };
  } catch (error) {
    return {
      title,
      result: 'error',
      detail: (error as Error).message,
      advice: 'No share is mounted without it.',
    };
  }
}

/** Only where somebody else could answer at the address of a NAS unnoticed. */
function hostKeysCheck({ connections }: Config): readonly Check[] {
  const unchecked = connections.filter(checksNoHostKey);
  if (unchecked.length === 0) return [];
  return [
    {
      title: 'host keys',
      result: 'warning',
      detail:
        `connections that check no host key: ${unchecked.map(({ name }) => name).join(', ')}; whoever answers at the ` +
        'address of the NAS gets what is sent, passwords too',
      advice:
        'Run `ssh-keyscan -p PORT HOST > /etc/mountkeeper/known_hosts`, compare what `ssh-keygen -l -f ' +
        '/etc/mountkeeper/known_hosts` shows with the fingerprint that the NAS shows, and name the file in the ' +
        "connection's options: known_hosts_file.",
    },
  ];
}

async function fuseCheck(): Promise<Check> {
  const problem = await fuseProblem(locate);
  return {
    title: 'FUSE',
    result: problem === undefined ? 'ok' : 'error',
    detail: problem ?? '/dev/fuse and fusermount3 are there',
    advice: problem === undefined ? '' : 'Nothing can be mounted without it.',
  };
}

async function otherUsersCheck(): Promise<readonly Check[]> {
  if (process.getuid?.() === 0) return [];
  const isAllowed = await userAllowOther();
  return [
    {
      title: 'user_allow_other',
      result: isAllowed ? 'ok' : 'warning',
      detail: isAllowed
        ? 'set in /etc/fuse.conf'
        : 'not set in /etc/fuse.conf: servers that run as other users cannot enter the shares',
      advice: isAllowed ? '' : 'Add a line "user_allow_other" to /etc/fuse.conf, or run the daemon as root.',
    },
  ];
}

/** Whether shares can be mounted so that users may write to them. */
async function writingCheck(config: Config, mountTable: MountTable): Promise<Check> {
  const title = 'writing to shares';
  if (!isLayered()) {
    const isAsked = config.shares.some((share) => !share.read_only);
    return {
      title,
      result: isAsked ? 'error' : 'ok',
      detail: 'the daemon does not run as root: shares can only be read',
      advice: isAsked ? 'Run the daemon as root, or set read_only = true for every share.' : '',
    };
  }
  const problem = (await bindfsProblem()) ?? (await diskProblem(config.cache.dir, mountTable));
  return {
    title,
    result: problem === undefined ? 'ok' : 'error',
    detail: problem ?? 'bindfs and a local file system are there',
    advice: problem === undefined ? '' : 'No share is mounted without it.',
  };
}

async function cacheCheck(config: Config, mountTable: MountTable): Promise<Check> {
  const title = 'cache';
  const { dir } = config.cache;
  const foreign = await refuseForeignCache(dir).catch((error: unknown) => (error as Error).message);
  if (foreign !== undefined)
    return { title, result: 'error', detail: foreign, advice: 'No share is mounted there.' };
  const fsType = (await holderOf(dir, mountTable))?.fsType ?? 'an unknown file system';
  const space = await freeSpace(dir);
  const detail = `${dir} on ${fsType}, ${formatBytes(space)} free`;
  if (fsType === 'tmpfs')
    return {
      title,
      result: 'warning',
      detail,
      advice:
        'A cache in memory loses files that wait for upload when the machine stops. ' +
        'Set cache.dir to a folder on a disk.',
    };
  const isFull = space < sizeBytes(config.cache.min_free_space);
  return {
    title,
    result: isFull ? 'warning' : 'ok',
    detail,
    advice: isFull
      ? 'Less than cache.min_free_space is free: make room, or set cache.max_size. ' +
        'Once the disk is full, writes to the shares fail.'
      : '',
  };
}

async function rootCheck(config: Config, mountTable: MountTable): Promise<Check> {
  const holder = await holderOf(config.mount.root, mountTable);
  const isFuse = holder?.fsType.startsWith('fuse') === true;
  return {
    title: 'mount root',
    result: isFuse ? 'error' : 'ok',
    detail: isFuse ? `${config.mount.root} lies below the mount ${holder.source}` : config.mount.root,
    advice: isFuse ? 'Set mount.root to a folder on a local disk.' : '',
  };
}

/** Nothing where no user of this machine has a hand in the way to a mount point. */
async function mountPointsCheck(config: Config, processes: Processes): Promise<readonly Check[]> {
  const said = await turnableMountPoints(config.shares, processes);
  if (said.size === 0) return [];
  return [
    {
      title: 'mount points',
      result: 'error',
      detail: [...said].map(([share, message]) => `share "${share}": ${message}`).join('; '),
      advice: 'A daemon that runs as root does not mount these shares, nor again one that is mounted now.',
    },
  ];
}

/** Free space of the folder, or of its nearest ancestor that exists. */
async function freeSpace(dir: string): Promise<number> {
  for (let path = dir; ; path = dirname(path)) {
    // Not there: the folder above is asked.
    const found = await freeBytes(path).catch(() => undefined);
    if (found !== undefined) return found;
    if (path === dirname(path)) return 0;
  }
}
