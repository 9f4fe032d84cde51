import { createHash, randomBytes } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { manageServer, pause, rootWith } from 'mountkeeper';
import type { Clock, ManagedServer, Logger, ManagedProcess, Processes, ProcessSpec } from 'mountkeeper';
import { ask } from '../exporter/health-check.ts';
import { removeFreshSockets } from '../exporter/paths.ts';
import type { WebdavPaths } from '../exporter/paths.ts';
import type { Backend } from '../proxy/state.ts';
import { formatPath } from '../proxy/requests/path.ts';
import { instanceOf } from '../proxy/instance.ts';

export const BACKEND_PREFIX = 'webdav/engine/';
const USER = 'front';
/** What lies in a share is root's, but what an admin has given to somebody. */
const OTHERS_FILES = ['dac_override', 'fowner'];
const GRACE_MS = 1_500;
const READY_MS = 10_000;
const LOOK_MS = 40;

export interface SeparateBackendOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly paths: WebdavPaths;
  readonly share: string;
  readonly mountPoint: string;
  /** The process id of the mount's rclone. */
  readonly mountPid: number;
  readonly rclone: string;
  /** Called when it serves, perhaps at a new address. */
  readonly onReady: () => void;
}

/**
 * A backend process next to the mount, for tools that cannot serve from inside it. One process per share,
 * so that one that hangs delays no other.
 */
export class SeparateBackend {
  readonly #options: SeparateBackendOptions;
  readonly #server: ManagedServer;
  #backend: Backend | undefined;

  constructor(options: SeparateBackendOptions) {
    this.#options = options;
    this.#server = manageServer({
      clock: options.clock,
      log: options.log,
      processes: options.processes,
      key: `${BACKEND_PREFIX}${options.share}`,
      graceMs: GRACE_MS,
      plan: () => this.#plan(),
      ready: async (process, signal) => {
        const backend = backendOf(process, options.mountPid);
        await awaitReady(backend, options, signal);
        // Who may come this far is the folder's affair, and the password's.
        if (backend.socketPath !== undefined) await chmod(backend.socketPath, 0o777);
        this.#backend = backend;
        options.onReady();
      },
      cleanUp: async () => {
        this.#backend = undefined;
      },
    });
    this.#server.start();
  }

  isFor(mountPoint: string, mountPid: number): boolean {
    return this.#options.mountPoint === mountPoint && this.#options.mountPid === mountPid;
  }

  /** Undefined while it does not serve. */
  get backend(): Backend | undefined {
    return this.#backend;
  }

  get problem(): string {
    return this.#server.problem ?? 'it is starting';
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  release(): Promise<void> {
    return this.#server.release();
  }

  async #plan(): Promise<ProcessSpec> {
    const { share, mountPoint, rclone, processes, paths } = this.#options;
    const key = `${BACKEND_PREFIX}${share}`;
    const former = await processes.adopt(key);
    if (!former) await removeFreshSockets(paths, share);
    const socket = paths.freshSocket(share);
    const password = randomBytes(24).toString('base64url');
    const settings = [share, mountPoint, rclone];
    // One of a former version goes on: it has its port for as long as it lives.
    const isOnPort = former?.notes['port'] !== undefined;
    return {
      key,
      command: rclone,
      args: backendArguments(share, mountPoint, socket),
      env: { RCLONE_USER: USER, RCLONE_PASS: password },
      fingerprint: createHash('sha256')
        .update(JSON.stringify(isOnPort ? settings : [...settings, paths.sockets]))
        .digest('hex')
        .slice(0, 32),
      notes: { socket, password },
      rights: await rootWith({ processes, capabilities: OTHERS_FILES }),
    };
  }
}

/**
 * Sizes of files changed through other protocols are outdated for as long as a listing is cached, so that
 * is short. The time limits apply to whole transfers. With a smaller buffer than rclone's default, random
 * reads take two thirds of the time; without a buffer, writing takes half as long again. No port: whoever took it
 * first would be sent the password.
 */
export function backendArguments(share: string, mountPoint: string, socket: string): readonly string[] {
  return [
    'serve',
    'webdav',
    mountPoint,
    `--addr=unix://${socket}`,
    `--baseurl=/${share}`,
    '--config=',
    '--vfs-cache-mode=off',
    '--dir-cache-time=1s',
    '--poll-interval=0',
    '--vfs-read-chunk-size=off',
    '--buffer-size=2M',
    '--server-read-timeout=720h',
    '--server-write-timeout=720h',
    '--max-header-bytes=65536',
    '--log-level=NOTICE',
  ];
}

function backendOf({ pid, notes }: ManagedProcess, mountPid: number): Backend {
  const { port, socket, password } = notes;
  return {
    instance: instanceOf(pid),
    behind: instanceOf(mountPid),
    ...(port === undefined ? { socketPath: String(socket) } : { port: Number(port) }),
    authorization: `Basic ${Buffer.from(`${USER}:${password ?? ''}`).toString('base64')}`,
    takesProperties: true,
  };
}

async function awaitReady(
  { socketPath, port, authorization }: Backend,
  { clock, share }: SeparateBackendOptions,
  signal: AbortSignal,
): Promise<void> {
  const deadline = clock.deadline(READY_MS, signal);
  const question = {
    ...(socketPath === undefined ? { host: '127.0.0.1', port } : { socketPath }),
    method: 'PROPFIND',
    path: `${formatPath({ share, parts: [] })}/`,
    headers: { depth: '0', authorization },
  };
  while (!deadline.aborted) {
    const isThere = await ask(question, '', clock.deadline(2_000, deadline)).then(
      ({ status }) => status === 207,
      // Not yet.
      () => false,
    );
    if (isThere) return;
    await pause(clock, LOOK_MS, deadline);
  }
  signal.throwIfAborted();
  throw new Error('its rclone does not serve');
}
