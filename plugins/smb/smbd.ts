import { createHash } from 'node:crypto';
import { readFile, rename } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootWith, untilAnswered, writeWhole } from 'mountkeeper';
import type { Clock, Logger, ManagedProcess, Processes, ProcessRights, ProcessSpec } from 'mountkeeper';
import type { Listening } from './addresses.ts';
import { noteOf, startedWith } from './reach.ts';
import type { SmbPaths } from './paths.ts';
import type { Samba } from './samba.ts';
import type { ServedShare } from './server-config.ts';
import { disconnectChanged, reload } from './sessions.ts';
import type { Undone } from './sessions.ts';
import { isAudit } from './sign-ins/refusal.ts';

export const PROCESS_KEY = 'smb/smbd';
export const GRACE_MS = 5_000;
const READY_MS = 10_000;
const LOOK_MS = 40;
const HELPER_END_MS = 2_000;
const LAST_LINES = 50;

/** The private user list replaces the system's, only for this server and its tools. */
export function serverEnvironment(samba: Samba, paths: SmbPaths): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: samba.nssWrapper,
    NSS_WRAPPER_PASSWD: paths.nssPasswd,
    NSS_WRAPPER_GROUP: paths.nssGroup,
  };
}

/**
 * It becomes whom a session logs in as before it becomes the mounts' owner, and reads, writes and dates what an admin
 * has given to somebody.
 */
const CAPABILITIES = ['setuid', 'setgid', 'dac_override', 'fowner'];
const FIRST_FREE_PORT = 1_024;

/** What it is left with, beside a daemon that is root. */
export function serverRights(port: number, processes: Processes): Promise<ProcessRights | undefined> {
  const toListen = port < FIRST_FREE_PORT ? ['net_bind_service'] : [];
  return rootWith({ processes, capabilities: [...CAPABILITIES, ...toListen] });
}

export interface SmbdSettings {
  readonly samba: Samba;
  readonly paths: SmbPaths;
  readonly port: number;
  /** As configured, whether this machine has them or not. */
  readonly listen: readonly string[];
}

/** A server that runs stays with the addresses of its start, unless it is to be another one anyway. */
export function specFor(
  settings: SmbdSettings,
  { interfaces, addresses }: Listening,
  running?: Pick<ManagedProcess, 'fingerprint' | 'notes'>,
): ProcessSpec {
  const { port, listen } = settings;
  const entries = interfaces.length === 0 ? [] : listen;
  const startedAt = (started: readonly string[]): ProcessSpec => ({
    ...serverSpec(settings, [port, entries, started]),
    notes: noteOf(started),
  });
  if (!running) return startedAt(addresses);
  const started = startedWith(running);
  const same = started
    ? [startedAt(started)]
    : // Former versions counted only the entries that were there, and noted nothing.
      [entries, interfaces].map((counted) => serverSpec(settings, [port, counted]));
  return same.find(({ fingerprint }) => fingerprint === running.fingerprint) ?? startedAt(addresses);
}

/** `parts`: settings that a running server does not apply by reading its configuration again. */
function serverSpec({ samba, paths }: SmbdSettings, parts: unknown): ProcessSpec {
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

export interface Awaiting {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly port: number;
  /** As a client would ask. */
  readonly ask: (signal: AbortSignal) => Promise<void>;
}

export async function awaitReady(
  process: ManagedProcess,
  { clock, signal, port, ask }: Awaiting,
): Promise<void> {
  const unanswered = await untilAnswered({ process, clock, signal, readyMs: READY_MS, ask });
  if (!unanswered) return;
  const lines = (await process.tail(LAST_LINES))
    .filter((line) => !isAudit(line))
    .slice(-3)
    .join(' ')
    .trim();
  throw new Error(
    `smbd does not answer on port ${port}: ` +
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

export interface Wanted {
  /** Of the configuration file. */
  readonly text: string;
  /** The shares in it, by name. */
  readonly shares: ReadonlyMap<string, ServedShare>;
  /** Of the server that runs and can be told; undefined while none does. */
  readonly env: Readonly<Record<string, string>> | undefined;
}

/** What clients entered the shares by. */
interface Entered {
  readonly shares: ReadonlyMap<string, ServedShare>;
  /** Those who could not be told to leave when they were asked to the last time; undefined: nobody was asked. */
  readonly left?: ReadonlyMap<string, Undone>;
}

/** What smbd has been told, and what its sessions may have entered the shares by. */
export class Enforcement {
  readonly #tools: { readonly processes: Processes; readonly paths: SmbPaths; readonly log: Logger };
  #written: string | undefined;
  /** What the server has been told to read; undefined while that is not known. */
  #told: string | undefined;
  /** The last is what clients enter by; before it is what those entered by who could not be disconnected yet. */
  #entered: readonly Entered[] = [];
  #saved: string | undefined;
  #problem: string | undefined;

  constructor(tools: { readonly processes: Processes; readonly paths: SmbPaths; readonly log: Logger }) {
    this.#tools = tools;
  }

  /** The configuration in the file; undefined while none is known. */
  get written(): string | undefined {
    return this.#written;
  }

  /** Why smbd does not serve by what is wanted: by the former configuration, or clients who have not left. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The server reads its configuration again at the next `apply`: what it read at its start is not known. */
  tellAgain(): void {
    this.#told = undefined;
  }

  /** What a former daemon's server was told; rejects when its shares are not known. */
  async recall(): Promise<ReadonlyMap<string, ServedShare>> {
    const { paths } = this.#tools;
    // None: then it is written anew, and the server reads it.
    this.#written = await readFile(paths.conf, 'utf8').catch(() => undefined);
    const shares = JSON.parse(await readFile(paths.shares, 'utf8')) as ServedShare[];
    const entered = new Map(shares.map((share) => [share.name, share]));
    this.#entered = [{ shares: entered }];
    return entered;
  }

  /**
   * Writes the configuration, makes the server read it, and disconnects clients of shares that were removed
   * or changed, once the server lets them in by that alone: they enter again at once. Rejects when the server
   * would not accept it or cannot be told. Call it every few seconds: what failed is tried again.
   */
  async apply(wanted: Wanted): Promise<void> {
    try {
      if (wanted.text !== this.#written) await this.#write(wanted.text);
      if (wanted.env && wanted.text !== this.#told) await this.#tell(wanted.text);
    } catch (error) {
      this.#problem = (error as Error).message;
      throw error;
    }
    const problem = await this.#disconnect(wanted);
    if (problem !== undefined && problem !== this.#problem)
      this.#tools.log.error({ reason: problem }, 'clients may be in shares by their former access yet');
    this.#problem = problem;
  }

  async #write(text: string): Promise<void> {
    const { processes, paths, log } = this.#tools;
    const next = `${paths.conf}.next`;
    await writeWhole(next, text);
    const problem = await configProblem(processes, next);
    if (problem !== undefined && problem !== this.#problem)
      log.error({ reason: problem }, 'configuration of smbd is not valid, the former one stays');
    if (problem !== undefined) throw new Error(problem);
    await rename(next, paths.conf);
    this.#written = text;
  }

  async #tell(text: string): Promise<void> {
    // When it fails, the server may have read it or not, and is told again.
    this.#told = undefined;
    await reload(this.#tools.processes, this.#tools.paths);
    this.#told = text;
  }

  /** Why some are not disconnected yet. */
  async #disconnect({ shares, env }: Wanted): Promise<string | undefined> {
    if (!env) return undefined;
    const { processes, paths } = this.#tools;
    const now = new Map(shares);
    const remaining: Entered[] = [];
    let problem: string | undefined;
    for (const { shares: former, left } of this.#entered) {
      const undone = await disconnectChanged(former, now, { processes, paths, env }, left);
      if (undone.size > 0)
        remaining.push({ shares: new Map([...former].filter(([name]) => undone.has(name))), left: undone });
      for (const [name, { reason }] of undone)
        problem ??= `clients of the share '${name}' are not disconnected yet: ${reason}`;
    }
    this.#entered = [...remaining, { shares: now }];
    return (await this.#save()) ?? problem;
  }

  /** After the disconnecting: a daemon that is killed before this leaves the rest to the next one. */
  async #save(): Promise<string | undefined> {
    // What came first stands for those who are left of it.
    const shares = new Map(this.#entered.toReversed().flatMap((entered) => [...entered.shares]));
    const text = JSON.stringify([...shares.values()]);
    try {
      if (text !== this.#saved) await writeWhole(this.#tools.paths.shares, text);
      this.#saved = text;
      return undefined;
    } catch (error) {
      return `the shares that clients have entered cannot be noted: ${(error as Error).message}`;
    }
  }
}
