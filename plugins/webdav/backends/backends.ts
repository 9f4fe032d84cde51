import { chmod } from 'node:fs/promises';
import type { Clock, Logger, Mount, Processes, ShareSpec } from 'mountkeeper';
import { SeparateBackend, BACKEND_PREFIX } from './separate-backend.ts';
import type { Backend } from '../proxy/state.ts';
import { instanceOf } from '../proxy/instance.ts';
import { preparePaths } from '../exporter/paths.ts';
import type { WebdavPaths } from '../exporter/paths.ts';

/** Limit for two calls of the remote control of a process that may hang. */
const INSIDE_MS = 2_000;
/** Limit for a separate process, which takes a fraction of a second to start. */
const SEPARATE_MS = 3_000;
const LOOK_MS = 20;
const GRACE_MS = 1_500;

export interface BackendsTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly paths: WebdavPaths;
  readonly rclone: () => string;
  /** Called when no client may begin to write to the share any more. Resolves once that is so. */
  readonly onFreeze: (share: string) => Promise<void>;
  /** Called when the share's backend serves, perhaps at a new address. */
  readonly onReady: (share: string) => void;
}

/**
 * The backends of all shares: the process behind a share's mount where it can serve, otherwise a separate
 * one.
 */
export class Backends {
  readonly #tools: BackendsTools;
  readonly #separate = new Map<string, SeparateBackend>();
  #isClosed = false;

  constructor(tools: BackendsTools) {
    this.#tools = tools;
  }

  /** Rejects with a plain sentence when the share cannot be served now. */
  async obtain({ share: { name } }: ShareSpec, mount: Mount): Promise<Backend> {
    const { clock, paths, onFreeze } = this.#tools;
    await preparePaths(paths);
    const socket = paths.socket(name);
    const signal = clock.deadline(INSIDE_MS);
    const isInside = await mount
      .serve?.({ protocol: 'webdav', socket, baseUrl: `/${name}`, onFreeze: () => onFreeze(name), signal })
      .catch((error: unknown) =>
        Promise.reject(
          new Error(`its mount does not take it up (${(error as Error).message})`, { cause: error }),
        ),
      );
    if (isInside !== true) return this.#separateOf(name, mount);
    // The mount's process has made it as its own user. Who may come this far is the folder's affair.
    await chmod(socket, 0o777);
    await this.drop(name);
    return { instance: instanceOf(mount.pid), socketPath: socket, takesProperties: true };
  }

  /** Ends separate processes of mounts whose shares no longer exist. */
  async keepOnly(shares: ReadonlySet<string>): Promise<void> {
    const { processes } = this.#tools;
    await Promise.all(
      [...this.#separate.keys()].filter((name) => !shares.has(name)).map((name) => this.drop(name)),
    );
    // Processes of a former daemon that no share has claimed.
    const unclaimed = (await processes.recorded(BACKEND_PREFIX)).filter(
      (key) =>
        !shares.has(key.slice(BACKEND_PREFIX.length)) &&
        !this.#separate.has(key.slice(BACKEND_PREFIX.length)),
    );
    await Promise.all(
      unclaimed.map(async (key) => (await processes.adopt(key))?.stop({ graceMs: GRACE_MS })),
    );
  }

  async drop(share: string): Promise<void> {
    const backend = this.#separate.get(share);
    this.#separate.delete(share);
    await backend?.stop();
  }

  /** Starts nothing any more. Running processes are left for the next daemon, or ended. */
  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    if (keepsRunning) await Promise.all([...this.#separate.values()].map((backend) => backend.release()));
    else await this.keepOnly(new Set());
  }

  /** Resolves with the separate backend once it serves. */
  async #separateOf(share: string, { pid, readerPid, plan: { mountPoint } }: Mount): Promise<Backend> {
    const { clock } = this.#tools;
    const former = this.#separate.get(share);
    if (former?.isFor(mountPoint, pid) === false) await this.drop(share);
    if (this.#isClosed) throw new Error('WebDAV is switched off just now');
    const backend = this.#separate.get(share) ?? this.#start(share, mountPoint, pid);
    const end = clock.monotonic() + SEPARATE_MS;
    while (!backend.backend && clock.monotonic() < end) await clock.sleep(LOOK_MS);
    if (!backend.backend) throw new Error(`its server does not run: ${backend.problem}`);
    return readerPid === undefined ? backend.backend : { ...backend.backend, reader: instanceOf(readerPid) };
  }

  #start(share: string, mountPoint: string, mountPid: number): SeparateBackend {
    const { clock, log, processes, paths, onReady, rclone } = this.#tools;
    const backend = new SeparateBackend({
      clock,
      log,
      processes,
      paths,
      share,
      mountPoint,
      mountPid,
      rclone: rclone(),
      onReady: () => onReady(share),
    });
    this.#separate.set(share, backend);
    return backend;
  }
}
