import { createHash } from 'node:crypto';
import { constants, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { firstAccessible, ownAddress, rootWith, untilAnswered } from 'mountkeeper';
import type {
  Clock,
  ManagedProcess,
  Processes,
  ProcessRights,
  ProcessSpec,
  ServerAddress,
} from 'mountkeeper';
import { askForRoot } from './health-check.ts';
import type { NfsPaths } from './paths.ts';

export const PROCESS_KEY = 'nfs/ganesha';
export const GRACE_MS = 6_000;
const READY_MS = 15_000;
const LOOK_MS = 40;
const REREAD_MS = 4_000;
const REREAD_DONE = 'Reread exports complete';
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
const LIBRARIES = ['/usr/local/lib', '/usr/lib64', '/usr/lib'];

export interface Ganesha {
  readonly command: string;
  /** Changes when another version is installed. */
  readonly stamp: string;
}

function locateGanesha(): Promise<string | undefined> {
  return firstAccessible(
    FOLDERS.map((folder) => join(folder, 'ganesha.nfsd')),
    constants.X_OK,
  );
}

/** Debian's names of missing packages. */
export async function missingPackages(): Promise<readonly string[]> {
  const command = await locateGanesha();
  const folders = await Promise.all(
    LIBRARIES.map(async (folder) => [
      // Not every system has each of them.
      folder,
      ...(await readdir(folder).catch(() => []))
        .filter((name) => name.includes('-linux-'))
        .map((name) => join(folder, name)),
    ]),
  );
  const module = await firstAccessible(
    folders.flat().map((folder) => join(folder, 'ganesha', 'libfsalvfs.so')),
  );
  return [
    ...(command === undefined ? ['nfs-ganesha'] : []),
    ...(module === undefined ? ['nfs-ganesha-vfs'] : []),
  ];
}

export const NO_MOUNT_TABLE = '/etc/mtab is missing, and NFS-Ganesha finds no mount without it';
export const MAKE_MOUNT_TABLE = 'make it: ln -sf /proc/self/mounts /etc/mtab';

/** Containers, and machines set up by hand, may lack it. */
export async function hasMountTable(file = '/etc/mtab'): Promise<boolean> {
  return (await firstAccessible([file])) !== undefined;
}

/** Rejects with a sentence that says what to install. */
export async function findGanesha(): Promise<Ganesha> {
  const missing = await missingPackages();
  if (missing.length > 0)
    throw new Error(
      'the NFS server is not installed: install ' +
        `${missing.length > 1 ? 'the packages' : 'the package'} ${missing.join(', ')}`,
    );
  if (process.getuid?.() !== 0)
    throw new Error('NFS-Ganesha needs root: run the daemon as root, or set nfs.enabled = false');
  if (!(await hasMountTable())) throw new Error(`${NO_MOUNT_TABLE}; ${MAKE_MOUNT_TABLE}`);
  const command = (await locateGanesha()) as string;
  const { mtimeMs, size } = await stat(command);
  return { command, stamp: `${command} ${size} ${mtimeMs}` };
}

/**
 * It finds files by their handles, acts with each call's user, and does what an admin's clients do with owners, modes
 * and times.
 */
const CAPABILITIES = ['dac_read_search', 'dac_override', 'setuid', 'setgid', 'chown', 'fowner'];
const FIRST_FREE_PORT = 1_024;

/** What it is left with, beside a daemon that is root. */
export function serverRights(port: number, processes: Processes): Promise<ProcessRights | undefined> {
  const toListen = port < FIRST_FREE_PORT ? ['net_bind_service'] : [];
  return rootWith({ processes, capabilities: [...CAPABILITIES, ...toListen] });
}

export function serverSpec(ganesha: Ganesha, paths: NfsPaths, address: ServerAddress): ProcessSpec {
  return {
    key: PROCESS_KEY,
    command: ganesha.command,
    args: ['-F', '-f', paths.conf, '-L', 'STDOUT', '-p', paths.pid],
    fingerprint: createHash('sha256')
      .update(JSON.stringify([ganesha, paths.root, address]))
      .digest('hex')
      .slice(0, 32),
  };
}

export async function awaitReady(
  address: ServerAddress,
  process: ManagedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const unanswered = await untilAnswered({
    process,
    clock,
    signal,
    readyMs: READY_MS,
    ask: (deadline) => askForRoot(ownAddress(address), deadline),
  });
  if (!unanswered) return;
  const lines = await process.tail(30);
  const reason =
    lines.findLast((line) => /FATAL|CRIT/.test(line))?.replace(/^.*?:(FATAL|CRIT) :/, '') ??
    (unanswered.last as Error | undefined)?.message;
  throw new Error(
    `NFS-Ganesha does not answer on port ${address.port}: ${reason?.trim() ?? 'no reason given'}`,
  );
}

type Hearing = Pick<ManagedProcess, 'logFile' | 'signal' | 'isAlive'>;

/**
 * Makes the server read its exports again; false when it did not confirm that in time. `owes`: it has not confirmed
 * the time before, so the first confirmation may be of what it read then. Signals that wait become one, so the second
 * is of what the file holds now.
 */
export async function reread(server: Hearing, clock: Clock, { owes }: { owes: boolean }): Promise<boolean> {
  const isConfirmed = await confirmed(server, clock);
  return isConfirmed && owes ? confirmed(server, clock) : isConfirmed;
}

async function confirmed(server: Hearing, clock: Clock): Promise<boolean> {
  const from = await sizeOf(server.logFile);
  server.signal('SIGHUP');
  const end = clock.monotonic() + REREAD_MS;
  while (server.isAlive() && clock.monotonic() < end) {
    await clock.sleep(LOOK_MS / 2);
    if ((await textSince(server.logFile, from)).includes(REREAD_DONE)) return true;
  }
  return false;
}

async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

async function textSince(file: string, from: number): Promise<string> {
  const size = await sizeOf(file);
  const start = size < from ? 0 : from;
  if (size === start) return '';
  const handle = await open(file, 'r');
  try {
    const buffer = Buffer.alloc(Math.min(size - start, 1_048_576));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Removes recovery records: clients never reclaim state, so the records would only grow. */
export async function forgetClients(paths: NfsPaths): Promise<void> {
  await rm(paths.recovery, { recursive: true, force: true });
  await rm(paths.pid, { force: true });
  await mkdir(paths.recovery, { recursive: true, mode: 0o700 });
}
