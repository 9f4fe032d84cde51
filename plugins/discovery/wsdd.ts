import { createHash } from 'node:crypto';
import { access, constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keepServer } from 'mountkeeper';
import type { Clock, KeptServer, Logger, Processes, ProcessSpec } from 'mountkeeper';

const PROCESS_KEY = 'discovery/wsdd';
const GRACE_MS = 2_000;
/** One that is still there after this long has found its network. */
const SETTLE_MS = 500;
/** A server that a former daemon left is kept until the SMB server has had its time to come up. */
const PATIENCE_MS = 30_000;
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
/**
 * It is a script, and runs without rights: an interpreter in somebody's own folder would be out of its reach.
 */
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

export async function locateWsdd(folders: readonly string[] = FOLDERS): Promise<string | undefined> {
  for (const folder of folders) {
    const file = join(folder, 'wsdd');
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  return undefined;
}

/** How this machine shows in Explorer. */
export interface Neighbour {
  readonly name: string;
  readonly workgroup: string;
  /** Addresses of the networks it shows in, IPv4. */
  readonly addresses: readonly string[];
}

/** Nobody, in a group of nobodies, by the name that this system has for it. */
export async function powerless(groupFile = '/etc/group'): Promise<string> {
  const groups = await readFile(groupFile, 'utf8').catch(() => '');
  return `nobody:${/^nogroup:/m.test(groups) ? 'nogroup' : 'nobody'}`;
}

export function wsddSpec(
  command: string,
  user: string,
  { name, workgroup, addresses }: Neighbour,
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
    '-u',
    user,
    ...networks,
  ];
  return {
    key: PROCESS_KEY,
    command,
    args,
    env: ENVIRONMENT,
    fingerprint: createHash('sha256')
      .update(JSON.stringify([command, args]))
      .digest('hex')
      .slice(0, 32),
  };
}

export interface WsddTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
}

/** Keeps wsdd running as long as there is something for Explorer to find. */
export class Wsdd {
  readonly #tools: WsddTools;
  readonly #openedAtMs: number;
  #wanted: Neighbour | undefined;
  #server: KeptServer | undefined;
  #isIdle = false;

  constructor(tools: WsddTools) {
    this.#tools = tools;
    this.#openedAtMs = tools.clock.monotonic();
  }

  /** Why it does not run though it is wanted; undefined while it does, or is starting. */
  get problem(): string | undefined {
    return this.#server?.isStarting === true ? undefined : this.#server?.problem;
  }

  async settle(wanted: Neighbour | undefined): Promise<void> {
    this.#wanted = wanted;
    if (!wanted) return this.#rest();
    this.#isIdle = false;
    if (this.#server) return this.#server.renew();
    this.#server = this.#keep();
    this.#server.start();
  }

  async close(keepsRunning: boolean): Promise<void> {
    const server = this.#server ?? (keepsRunning ? undefined : this.#keep());
    this.#server = undefined;
    await (keepsRunning ? server?.release() : server?.stop());
  }

  async #rest(): Promise<void> {
    const { clock } = this.#tools;
    if (this.#isIdle || (!this.#server && clock.monotonic() - this.#openedAtMs < PATIENCE_MS)) return;
    this.#isIdle = true;
    await this.close(false);
  }

  #keep(): KeptServer {
    const { clock } = this.#tools;
    return keepServer({
      ...this.#tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      plan: async () => {
        const command = await locateWsdd();
        if (command === undefined)
          throw new Error(
            'wsdd is not installed: install the package wsdd for this machine to show in Explorer',
          );
        if (!this.#wanted) throw new Error('there is nothing to show');
        return wsddSpec(command, await powerless(), this.#wanted);
      },
      ready: (_process, signal) => clock.sleep(SETTLE_MS, signal),
      cleanUp: async () => undefined,
    });
  }
}
