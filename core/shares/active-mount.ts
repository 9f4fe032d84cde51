/** A active mount and what goes with it. */
import type { Mount, ShareSpec } from '../contract/mount.ts';
import type { RunnerEnvironment } from './environment.ts';
import { ShareWatch } from './monitor.ts';

export interface ActiveMount {
  readonly mount: Mount;
  readonly watch: ShareWatch;
  /** What it was mounted with; of an adopted mount only known when it leads to the same place. */
  readonly spec: ShareSpec | undefined;
  readonly mountedAtMs: number;
  /** New writes are refused; only mounting anew undoes it. */
  isSealed: boolean;
  /** Seen clean after it was frozen: nothing of it waits for the place it was mounted from. */
  isDrained: boolean;
}

export interface ActiveMountOptions {
  readonly mount: Mount;
  readonly spec: ShareSpec | undefined;
  readonly pending: () => Promise<number>;
  readonly onHung: () => void;
  readonly onExited: (reason: string) => void;
}

export function holdMount(around: RunnerEnvironment, options: ActiveMountOptions): ActiveMount {
  const { clock, log, onChange } = around;
  const { mount, spec, pending, onHung } = options;
  const watch = new ShareWatch({
    mount,
    clock,
    log,
    onChange,
    onHung,
    pending,
    isSealed: () => active.isSealed,
  });
  const active: ActiveMount = {
    mount,
    spec,
    watch,
    mountedAtMs: clock.monotonic(),
    isSealed: mount.isSealed === true,
    isDrained: false,
  };
  void mount.exited.then(options.onExited);
  return active;
}
