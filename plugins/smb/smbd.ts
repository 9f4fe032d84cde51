import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, ManagedProcess, Processes, ProcessSpec } from 'mountkeeper';
import { negotiate } from './negotiate.ts';
import type { Place } from './paths.ts';
import type { Samba } from './samba.ts';

export const PROCESS_KEY = 'smb/smbd';
export const GRACE_MS = 5_000;
const READY_MS = 10_000;
const LOOK_MS = 40;
const HELPER_END_MS = 2_000;

/** The private user list takes the place of the system's, for the server and its tools alone. */
export function serverEnvironment(samba: Samba, place: Place): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: samba.nssWrapper,
    NSS_WRAPPER_PASSWD: place.nssPasswd,
    NSS_WRAPPER_GROUP: place.nssGroup,
  };
}

/** `parts`: what the running server cannot take over by reading its configuration again. */
export function serverSpec(samba: Samba, place: Place, parts: unknown): ProcessSpec {
  return {
    key: PROCESS_KEY,
    command: samba.smbd,
    args: ['--foreground', '--no-process-group', `--configfile=${place.conf}`, '--debug-stdout'],
    env: serverEnvironment(samba, place),
    fingerprint: createHash('sha256')
      .update(JSON.stringify([samba, place.root, parts]))
      .digest('hex')
      .slice(0, 32),
  };
}

export interface SmbdEndpoint {
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Resolves when every address is answered at as a client would be. */
export async function askEverywhere({ addresses, port }: SmbdEndpoint, signal: AbortSignal): Promise<void> {
  await Promise.all(addresses.map((host) => negotiate({ host, port }, signal)));
}

export async function awaitReady(
  door: SmbdEndpoint,
  process: ManagedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const deadline = clock.deadline(READY_MS, signal);
  let last: unknown;
  while (process.isAlive() && !deadline.aborted) {
    try {
      return await askEverywhere(door, clock.deadline(1_000, deadline));
    } catch (error) {
      last = error;
    }
    await clock.sleep(LOOK_MS, deadline).catch(() => undefined);
  }
  signal.throwIfAborted();
  const lines = (await process.tail(3)).join(' ').trim();
  throw new Error(
    `smbd does not answer on port ${door.port}: ${(lines === '' ? (last as Error | undefined)?.message : lines) ?? 'no reason given'}`,
  );
}

/** A helper that serves the list of shares runs on without its smbd, in a session of its own. */
export async function endHelper(place: Place, clock: Clock): Promise<void> {
  const text = await readFile(join(place.folder('pid'), 'samba-dcerpcd.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  if (!Number.isSafeInteger(pid) || pid <= 1 || !isHelper(pid, place)) return;
  send(pid, 'SIGTERM');
  const end = clock.monotonic() + HELPER_END_MS;
  while (isHelper(pid, place) && clock.monotonic() < end) await clock.sleep(LOOK_MS);
  // Its workers are of its group.
  if (isHelper(pid, place)) for (const target of [-pid, pid]) send(target, 'SIGKILL');
}

function isHelper(pid: number, place: Place): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(place.conf);
  } catch {
    return false;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/**
 * Has the server and every living session read the file again; a hang-up signal reaches the sessions not
 * always.
 */
export async function reload(processes: Processes, place: Place): Promise<void> {
  await processes.run({
    command: 'smbcontrol',
    args: ['-s', place.conf, 'smbd', 'reload-config'],
    timeoutMs: 3_000,
  });
}

/** Cuts the sessions' connections to one share; their other shares go on. */
export async function closeShare(processes: Processes, place: Place, share: string): Promise<void> {
  await processes.run({
    command: 'smbcontrol',
    args: ['-s', place.conf, 'smbd', 'close-share', share],
    timeoutMs: 3_000,
  });
}

/**
 * Ends the connections over which one of the users has logged in; whoever else is on them logs in again by
 * itself. Samba's own way, `close-denied-share`, would cut everybody here: it asks whether the user may enter
 * whom the files are forced to.
 */
export async function endSessions(
  users: ReadonlySet<string>,
  {
    processes,
    place,
    env,
  }: { readonly processes: Processes; readonly place: Place; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  const { stdout } = await processes.run({
    command: 'smbstatus',
    args: ['-s', place.conf, '-b'],
    env,
    timeoutMs: 5_000,
  });
  const pids = [...stdout.matchAll(/^(\d+)\s+(\S+)\s/gm)]
    .filter(([, , user = '']) => users.has(user.toLowerCase()))
    .map(([, pid = '']) => pid);
  for (const pid of new Set(pids))
    await processes.run({
      command: 'smbcontrol',
      args: ['-s', place.conf, pid, 'shutdown'],
      timeoutMs: 3_000,
    });
}

/** Why Samba would not take the file as it is meant; undefined when it would. */
export async function configProblem(processes: Processes, file: string): Promise<string | undefined> {
  const { code, stderr } = await processes.run({ command: 'testparm', args: ['-s', file], timeoutMs: 5_000 });
  const complaint = stderr
    .split('\n')
    .find((line) => /unknown parameter|ignoring badly formed|error|invalid/i.test(line));
  if (code === 0 && complaint === undefined) return undefined;
  return complaint?.trim() ?? `testparm ended with ${code}`;
}
