import { createHash } from 'node:crypto';
import { constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { firstAccessible, leastRights, manageServer } from 'mountkeeper';
import type { Clock, ManagedServer, Logger, Processes, ProcessRights, ProcessSpec } from 'mountkeeper';

const PROCESS_KEY = 'discovery/wsdd';
const GRACE_MS = 2_000;
/** A process that runs for this long has found its network. */
const SETTLE_MS = 500;
/** A process of a former daemon is kept until the SMB server has had time to start. */
const PATIENCE_MS = 30_000;
/** `nogroup` or `nobody`, whatever the system calls it. */
const NOBODYS_GROUP = 65_534;
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
/**
 * Folders for commands: wsdd is a script and runs without rights, so an interpreter in a user's home would
 * be unreadable for it.
 */
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

export function locateWsdd(folders: readonly string[] = FOLDERS): Promise<string | undefined> {
  return firstAccessible(
    folders.map((folder) => join(folder, 'wsdd')),
    constants.X_OK,
  );
}

/** How this machine appears in Explorer. */
export interface ExplorerEntry {
  readonly name: string;
  readonly workgroup: string;
  /** IPv4 addresses of the networks on which it appears. */
  readonly addresses: readonly string[];
}

/** The unprivileged user and group, by the names that this system has. */
export async function powerless(groupFile = '/etc/group'): Promise<string> {
  // A system without the file has the group `nobody` or none.
  const groups = await readFile(groupFile, 'utf8').catch(() => '');
  return `nobody:${/^nogroup:/m.test(groups) ? 'nogroup' : 'nobody'}`;
}

/** How wsdd is started: its program, and what it is left with or the user that it has to become by itself. */
export interface WsddProgram {
  readonly command: string;
  readonly rights?: ProcessRights | undefined;
  readonly user?: string | undefined;
}

export function wsddSpec(
  { command, rights, user }: WsddProgram,
  { name, workgroup, addresses }: ExplorerEntry,
): ProcessSpec {
  const networks = [...addresses].sort().flatMap((address) => ['-i', address]);
  const args = [
    '--shortlog',
    '--ipv4only',
    '--preserve-case',
    '-n',
    name,
    '-w',
    workgroup,
    ...(user === undefined ? [] : ['-u', user]),
    ...networks,
  ];
  return {
    key: PROCESS_KEY,
    command,
    args,
    env: ENVIRONMENT,
    fingerprint: createHash('sha256')
      .update(JSON.stringify([command, args, rights]))
      .digest('hex')
      .slice(0, 32),
    rights,
  };
}

/**
 * As the user of what faces the network, or as nobody where that is not possible. Not in that user's group: the kernel
 * lets a process read another one's memory, with passwords and keys in it, where both user and group are the same.
 */
export async function programAt(command: string, processes: Pick<Processes, 'run'>): Promise<WsddProgram> {
  const rights = await leastRights({ processes, capabilities: [], files: [command] });
  if (!rights?.user) return { command, user: await powerless() };
  return { command, rights: { ...rights, user: { ...rights.user, gid: NOBODYS_GROUP } } };
}

export interface WsddTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  /** Default: where systems have it. */
  readonly locate?: typeof locateWsdd;
}

/** Runs wsdd for as long as there is something for Explorer to find. */
export class Wsdd {
  readonly #tools: WsddTools;
  readonly #openedAtMs: number;
  #wanted: ExplorerEntry | undefined;
  /** What the last plan was made for. */
  #planned: ExplorerEntry | undefined;
  #server: ManagedServer | undefined;
  #isIdle = false;

  constructor(tools: WsddTools) {
    this.#tools = tools;
    this.#openedAtMs = tools.clock.monotonic();
  }

  /** Why it does not run although it should; undefined while it runs or is starting. */
  get problem(): string | undefined {
    return this.#server?.isStarting === true ? undefined : this.#server?.problem;
  }

  async settle(wanted: ExplorerEntry | undefined): Promise<void> {
    this.#wanted = wanted;
    if (!wanted) return this.#rest();
    this.#isIdle = false;
    if (this.#server) return this.#isPlanned() ? undefined : this.#server.renew();
    this.#server = this.#keep();
    this.#server.start();
  }

  async close(keepsRunning: boolean): Promise<void> {
    const server = this.#server ?? (keepsRunning ? undefined : this.#keep());
    this.#server = undefined;
    await (keepsRunning ? server?.release() : server?.stop());
  }

  /** Each plan asks the machine by a process, so it is made only for something else. */
  #isPlanned(): boolean {
    return isDeepStrictEqual(this.#wanted, this.#planned);
  }

  async #rest(): Promise<void> {
    const { clock } = this.#tools;
    if (this.#isIdle || (!this.#server && clock.monotonic() - this.#openedAtMs < PATIENCE_MS)) return;
    this.#isIdle = true;
    await this.close(false);
  }

  #keep(): ManagedServer {
    const { clock, locate = locateWsdd } = this.#tools;
    return manageServer({
      ...this.#tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      plan: async () => {
        const command = await locate();
        if (command === undefined)
          throw new Error(
            'wsdd is not installed: install the package wsdd for this machine to show in Explorer',
          );
        const wanted = this.#wanted;
        if (!wanted) throw new Error('there is nothing to show');
        const spec = wsddSpec(await programAt(command, this.#tools.processes), wanted);
        this.#planned = wanted;
        return spec;
      },
      ready: (_process, signal) => clock.sleep(SETTLE_MS, signal),
      cleanUp: async () => undefined,
    });
  }
}
