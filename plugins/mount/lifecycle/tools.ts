import type {
  Clock,
  Config,
  ConnectionMonitors,
  Logger,
  MountPlan,
  MountReader,
  MountTable,
  Paths,
  Processes,
  Secrets,
  ShareSpec,
  Uploader,
} from 'mountkeeper';
import type { Plans } from './mount-plan.ts';
import type { ControlPorts } from '../rclone/control/control-ports.ts';
import type { RcloneFinder } from '../rclone/installed.ts';
import type { WriteOut } from '../recovery/cache-sync.ts';

/** Services that the mounter uses; the configuration is read again each time. */
export interface MountTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly mountReader: MountReader;
  readonly secrets: Secrets;
  readonly paths: Paths;
  readonly finder: RcloneFinder;
  readonly config: () => Config;
  /** Undefined while nobody knows whether a NAS is there. */
  readonly connections: () => ConnectionMonitors | undefined;
  /** Throws a plain sentence while there is none. */
  readonly uploader: () => Uploader;
  /** Called when another rclone lies below a share, which stayed mounted. `reason`: why the former one ended. */
  readonly onReplaced?: (share: string, reason: string) => void;
  /** Called when a mounted share leads elsewhere by now and nothing waits for its former place: to mount it anew. */
  readonly onElsewhere?: (share: string) => void;
  /** Called when all has gone up that a former version left in the cache of a share that waits for it. */
  readonly onSent: (share: string) => void;
}

export interface FormerWork {
  readonly spec: ShareSpec;
  readonly plan: MountPlan;
  readonly cacheDir: string;
}

/** What a former version left in rclone's write cache. */
export interface FormerWrites {
  /**
   * Call it before anything of the share is touched. Resolves when nothing is being sent for it, by these settings or
   * others; rejects with a plain sentence while something is.
   */
  finish(share: string, fingerprint: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the cache is for reading; rejects with a plain sentence while something in it is not sent. */
  empty(work: FormerWork, signal: AbortSignal): Promise<void>;
}

/** With what the mounter adds for its mounts. */
export interface MountingTools extends MountTools {
  readonly writeOut: WriteOut;
  readonly controlPorts: ControlPorts;
  readonly plans: Plans;
  readonly former: FormerWrites;
}

export const PROCESS_PREFIX = 'mount/';

export function processKey(shareName: string): string {
  return `${PROCESS_PREFIX}${shareName}`;
}
