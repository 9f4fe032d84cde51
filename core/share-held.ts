/** A living mount and what goes with it. */
import type { Mount, ShareSpec } from './api.ts';
import type { RunnerSurroundings } from './share-surroundings.ts';
import { ShareWatch } from './share-watch.ts';

export interface Held {
  readonly mount: Mount;
  readonly watch: ShareWatch;
  /** What it was mounted with; of an adopted mount only known when it leads to the same place. */
  readonly spec: ShareSpec | undefined;
  readonly mountedAtMs: number;
  /** New writes are refused; only mounting anew undoes it. */
  isSealed: boolean;
  /** Seen clean after it was sealed: nothing of it waits for the place it was mounted from. */
  isDrained: boolean;
}

export interface HeldEvents {
  readonly onHung: () => void;
  readonly onExited: (reason: string) => void;
}

export function holdMount(around: RunnerSurroundings, mount: Mount, spec: ShareSpec | undefined, events: HeldEvents): Held {
  const { clock, log, onChange } = around;
  const watch = new ShareWatch({ mount, clock, log, onChange, onHung: events.onHung });
  void mount.exited.then(events.onExited);
  return { mount, spec, watch, mountedAtMs: clock.monotonic(), isSealed: false, isDrained: false };
}
