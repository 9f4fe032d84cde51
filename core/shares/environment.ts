/** What a share's runner needs from the supervisor; getters, since plugins come and go. */
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
  /** Something that the status shows has changed. */
  readonly onChange: () => void;
  /** A mount is gone: what its cache holds on the disk has to be looked at again. */
  readonly onUnmount: () => void;
}
