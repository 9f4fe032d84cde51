import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { untilAnswered } from 'mountkeeper';
import type { Clock, ManagedProcess, Processes, ProcessSpec } from 'mountkeeper';
import { negotiate } from './negotiate.ts';
import type { SmbPaths } from './paths.ts';
import type { Samba } from './samba.ts';

export const PROCESS_KEY = 'smb/smbd';
export const GRACE_MS = 5_000;
const READY_MS = 10_000;
const LOOK_MS = 40;
const HELPER_END_MS = 2_000;

/** The private user list replaces the system's, only for this server and its tools. */
export function serverEnvironment(samba: Samba, paths: SmbPaths): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: samba.nssWrapper,
    NSS_WRAPPER_PASSWD: paths.nssPasswd,
    NSS_WRAPPER_GROUP: paths.nssGroup,
  };
}

/** `parts`: settings that a running server does not apply by reading its configuration again. */
export function serverSpec(samba: Samba, paths: SmbPaths, parts: unknown): ProcessSpec {
  return {
    key: PROCESS_KEY,
    command: samba.smbd,
    args: ['--foreground', '--no-process-group', `--configfile=${paths.conf}`, '--debug-stdout'],
    env: serverEnvironment(samba, paths),
    fingerprint: createHash('sha256')
      .update(JSON.stringify([samba, paths.root, parts]))
      .digest('hex')
      .slice(0, 32),
  };
}

export interface SmbdEndpoint {
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Resolves when clients get answers at every address. */
export async function askEverywhere({ addresses, port }: SmbdEndpoint, signal: AbortSignal): Promise<void> {
  await Promise.all(addresses.map((host) => negotiate({ host, port }, signal)));
}

export async function awaitReady(
  endpoint: SmbdEndpoint,
  process: ManagedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const unanswered = await untilAnswered({
    process,
    clock,
    signal,
    readyMs: READY_MS,
    ask: (deadline) => askEverywhere(endpoint, deadline),
  });
  if (!unanswered) return;
  const lines = (await process.tail(3)).join(' ').trim();
  throw new Error(
    `smbd does not answer on port ${endpoint.port}: ` +
      `${(lines === '' ? (unanswered.last as Error | undefined)?.message : lines) ?? 'no reason given'}`,
  );
}

/** Ends the helper that lists shares: it survives its smbd, in a session of its own. */
export async function endHelper(paths: SmbPaths, clock: Clock): Promise<void> {
  // No helper has run.
  const text = await readFile(join(paths.folder('pid'), 'samba-dcerpcd.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  if (!Number.isSafeInteger(pid) || pid <= 1 || !isHelper(pid, paths)) return;
  send(pid, 'SIGTERM');
  const end = clock.monotonic() + HELPER_END_MS;
  while (isHelper(pid, paths) && clock.monotonic() < end) await clock.sleep(LOOK_MS);
  // Its workers are in its process group.
  if (isHelper(pid, paths)) for (const target of [-pid, pid]) send(target, 'SIGKILL');
}

function isHelper(pid: number, paths: SmbPaths): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(paths.conf);
  } catch {
    // The process is gone.
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

/** Why Samba would not accept the file as it is; undefined when it would. */
export async function configProblem(processes: Processes, file: string): Promise<string | undefined> {
  const { code, stderr } = await processes.run({ command: 'testparm', args: ['-s', file], timeoutMs: 5_000 });
  const complaint = stderr
    .split('\n')
    .find((line) => /unknown parameter|ignoring badly formed|error|invalid/i.test(line));
  if (code === 0 && complaint === undefined) return undefined;
  return complaint?.trim() ?? `testparm ended with ${code}`;
}
