/** What a share's runner needs from the supervisor. Getters, because plugins may change at any time. */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Exporter } from '../contract/exporter.ts';
import type { Mounter, Prober } from '../contract/mount.ts';
import type { HookRunner } from '../plugins/hooks.ts';

export interface RunnerEnvironment {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hooks: () => HookRunner;
  readonly mounter: () => Mounter | undefined;
  readonly prober: () => Prober | undefined;
  readonly exporters: () => readonly Exporter[];
  /** Called when something that the status shows has changed. */
  readonly onChange: () => void;
  /** Called when a mount has ended: its cache on disk must be scanned again. */
  readonly onUnmount: () => void;
}
