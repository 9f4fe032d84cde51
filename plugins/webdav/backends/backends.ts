import type { Clock, Logger, Mount, Processes, ShareSpec } from 'mountkeeper';
import { SeparateBackend, ENGINE_PREFIX } from './separate-backend.ts';
import type { Backend } from '../proxy/state.ts';
import { instanceOf } from '../proxy/instance.ts';
import { preparePlace } from '../exporter/paths.ts';
import type { Place } from '../exporter/paths.ts';

/** Two calls of the remote control of a process that may hang. */
const INSIDE_MS = 2_000;
/** A process beside takes a fraction of a second to start. */
const BESIDE_MS = 3_000;
const LOOK_MS = 20;
const GRACE_MS = 1_500;

export interface BackendsTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly place: Place;
  readonly rclone: () => string;
  /** No client may begin to write to the share. Resolves once that holds. */
  readonly onSeal: (share: string) => Promise<void>;
  /** The share's backend serves, perhaps elsewhere than before. */
  readonly onReady: (share: string) => void;
}

/**
 * What serves the files of each share to the proxy: the process behind its mount where that can, else one
 * beside it.
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
    const { clock, place, onSeal } = this.#tools;
    await preparePlace(place);
    const socket = place.socket(name);
    const signal = clock.deadline(INSIDE_MS);
    const isInside = await mount
      .serve?.({ protocol: 'webdav', socket, baseUrl: `/${name}`, onSeal: () => onSeal(name), signal })
      .catch((error: unknown) =>
        Promise.reject(
          new Error(`its mount does not take it up (${(error as Error).message})`, { cause: error }),
        ),
      );
    if (isInside !== true) return this.#separateOf(name, mount);
    await this.drop(name);
    return { instance: instanceOf(mount.pid), socketPath: socket, takesProperties: true };
  }

  /** Ends processes beside mounts that are not among the shares any more. */
  async keepOnly(shares: ReadonlySet<string>): Promise<void> {
    const { processes } = this.#tools;
    await Promise.all(
      [...this.#separate.keys()].filter((name) => !shares.has(name)).map((name) => this.drop(name)),
    );
    // Those of a former daemon that nobody has claimed.
    const unclaimed = (await processes.recorded(ENGINE_PREFIX)).filter(
      (key) =>
        !shares.has(key.slice(ENGINE_PREFIX.length)) && !this.#separate.has(key.slice(ENGINE_PREFIX.length)),
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

  /** Nothing is begun any more. What runs is left to the next daemon, or ended. */
  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    if (keepsRunning) await Promise.all([...this.#separate.values()].map((backend) => backend.release()));
    else await this.keepOnly(new Set());
  }

  /** Resolves with what serves beside the mount, once it does. */
  async #separateOf(share: string, { pid, plan: { mountPoint } }: Mount): Promise<Backend> {
    const { clock } = this.#tools;
    const former = this.#separate.get(share);
    if (former?.isFor(mountPoint, pid) === false) await this.drop(share);
    if (this.#isClosed) throw new Error('WebDAV is switched off just now');
    const backend = this.#separate.get(share) ?? this.#start(share, mountPoint, pid);
    const end = clock.monotonic() + BESIDE_MS;
    while (!backend.backend && clock.monotonic() < end) await clock.sleep(LOOK_MS);
    if (!backend.backend) throw new Error(`its server does not run: ${backend.problem}`);
    return backend.backend;
  }

  #start(share: string, mountPoint: string, mountPid: number): SeparateBackend {
    const { clock, log, processes, onReady, rclone } = this.#tools;
    const backend = new SeparateBackend({
      clock,
      log,
      processes,
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
