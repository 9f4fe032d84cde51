/** Who has logged in, and what of theirs ends when what they may do in a share becomes another. */
import { isDeepStrictEqual } from 'node:util';
import type { Processes } from 'mountkeeper';
import type { SmbPaths } from './paths.ts';
import type { SambaTools } from './samba.ts';
import { entranceTo } from './server-config.ts';
import type { ServedShare } from './server-config.ts';

const CONTROL_MS = 3_000;
const STATUS_MS = 5_000;

/** A login on a connection, which is a process of its own. */
export interface Session {
  readonly pid: string;
  readonly user: string;
}

/** Rejects when the server does not say. */
export async function sessionsOf({ processes, paths, env }: SambaTools): Promise<readonly Session[]> {
  const { code, stdout, stderr } = await processes.run({
    command: 'smbstatus',
    args: ['-s', paths.conf, '-b'],
    env,
    timeoutMs: STATUS_MS,
  });
  if (code !== 0) throw new Error(`smbstatus ended with ${code}: ${stderr.trim()}`);
  return [...stdout.matchAll(/^(\d+)\s+(\S+)\s/gm)].map(([, pid = '', user = '']) => ({ pid, user }));
}

/** Makes the server and every session read the file again; a SIGHUP does not always reach the sessions. */
export async function reload(processes: Processes, paths: SmbPaths): Promise<void> {
  await tell({ processes, paths }, 'smbd', 'reload-config');
}

/** Resolves once the server has done all that it was told before: it works off what it is told in order. */
export async function hasHeard(processes: Processes, paths: SmbPaths): Promise<void> {
  await tell({ processes, paths }, 'smbd', 'ping');
}

/** Disconnects sessions from one share; their other shares stay connected. */
export async function closeShare(processes: Processes, paths: SmbPaths, share: string): Promise<void> {
  await tell({ processes, paths }, 'smbd', 'close-share', share);
}

/**
 * Ends the connections on which one of the users has logged in; others on the same connection log in again
 * automatically. Samba's own `close-denied-share` would disconnect everybody here, because it checks the
 * access of the user that all files are forced to.
 */
export async function endSessions(users: ReadonlySet<string>, tools: SambaTools): Promise<void> {
  const pids = (await sessionsOf(tools))
    .filter(({ user }) => users.has(user.toLowerCase()))
    .map(({ pid }) => pid);
  const [first] = (await forEach(pids, (pid) => tellSession(tools, pid, 'shutdown'))).values();
  if (first) throw first;
}

/** Clients of a share that could not all be told to leave it. */
export interface Undone {
  readonly reason: string;
  /** The sessions that are left; undefined: nobody knows, it may be all. */
  readonly pids: ReadonlySet<string> | undefined;
}

/**
 * Disconnects from each share those of its clients whose session has become another: all of them when the share is
 * gone or another, else those whose user may do more or less than before. smbd asks what a user may do only when a
 * client enters a share; clients enter again by themselves. Files that others have open stay open.
 * Resolves with each share whose clients could not all be told. Given that again as `left`, it tries only those of
 * its sessions that are left: the others have entered again rightly.
 */
export async function disconnectChanged(
  before: ReadonlyMap<string, ServedShare>,
  now: ReadonlyMap<string, ServedShare>,
  tools: SambaTools,
  left: ReadonlyMap<string, Undone> = new Map(),
): Promise<ReadonlyMap<string, Undone>> {
  const undone = new Map<string, Undone>();
  const changed = [...before.values()].filter((share) => !isDeepStrictEqual(share, now.get(share.name)));
  if (changed.length === 0) return undone;
  const regrouped = changed.filter((share) => isSameButAccess(share, now.get(share.name)));
  // Who nobody can name is disconnected with all others.
  const sessions = regrouped.length === 0 ? [] : await sessionsOf(tools).catch(() => undefined);
  for (const share of changed) {
    const next = now.get(share.name);
    const pids = left.get(share.name)?.pids;
    const failure =
      sessions === undefined || !next || !regrouped.includes(share)
        ? await closeShare(tools.processes, tools.paths, share.name).then(
            () => undefined,
            (error: unknown) => ({ reason: (error as Error).message, pids }),
          )
        : await disconnect(
            sessions.filter(({ pid }) => pids?.has(pid) !== false),
            [share, next],
            tools,
          );
    if (failure) undone.set(share.name, failure);
  }
  return undone;
}

function isSameButAccess(share: ServedShare, next: ServedShare | undefined): boolean {
  return (
    next !== undefined && isDeepStrictEqual({ ...share, access: undefined }, { ...next, access: undefined })
  );
}

async function disconnect(
  sessions: readonly Session[],
  [before, now]: readonly [ServedShare, ServedShare],
  tools: SambaTools,
): Promise<Undone | undefined> {
  const pids = sessions
    .filter(({ user }) => entranceTo(before, user) !== entranceTo(now, user))
    .map(({ pid }) => pid);
  const failures = await forEach(pids, async (pid) => {
    // Told directly, so that it has read the file before its client enters again.
    await tellSession(tools, pid, 'reload-config');
    await tellSession(tools, pid, 'close-share', now.name);
  });
  const [first] = failures.values();
  return first && { reason: first.message, pids: new Set(failures.keys()) };
}

/** One that cannot be told keeps no other back. Resolves with the failures. */
async function forEach(
  pids: readonly string[],
  work: (pid: string) => Promise<void>,
): Promise<ReadonlyMap<string, Error>> {
  const failures = new Map<string, Error>();
  for (const pid of new Set(pids))
    await work(pid).catch((error: unknown) => failures.set(pid, error as Error));
  return failures;
}

/** A session that has ended needs to be told nothing. */
export async function tellSession(
  tools: SambaTools,
  pid: string,
  ...order: readonly string[]
): Promise<void> {
  try {
    await tell(tools, pid, ...order);
  } catch (error) {
    if (isAlive(Number(pid))) throw error;
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It may be another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Rejects when the order was not sent. */
async function tell(
  { processes, paths }: Pick<SambaTools, 'processes' | 'paths'>,
  ...order: readonly string[]
): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'smbcontrol',
    // A share's name may begin as an option does.
    args: ['-s', paths.conf, '--', ...order],
    timeoutMs: CONTROL_MS,
  });
  if (code !== 0) throw new Error(`smbcontrol ${order.join(' ')} ended with ${code}: ${stderr.trim()}`);
}
