import type {
  Clock,
  Config,
  Logger,
  MountReader,
  MountTable,
  Paths,
  Processes,
  Secrets,
  Uploader,
} from 'mountkeeper';
import type { ControlPorts } from '../rclone/control-ports.ts';
import type { RcloneFinder } from '../rclone/installed.ts';
import type { WriteOut } from '../recovery/cache-sync.ts';

/** What the mounter works with; the configuration is asked anew each time. */
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
  /** Throws a plain sentence while there is none. */
  readonly uploader: () => Uploader;
}

/** And what the mounter adds for its mounts. */
export interface MountingTools extends MountTools {
  readonly writeOut: WriteOut;
  readonly controlPorts: ControlPorts;
}

export const PROCESS_PREFIX = 'mount/';

export function processKey(shareName: string): string {
  return `${PROCESS_PREFIX}${shareName}`;
}
