/** What a share holds now: its active mount if it has one, and what its cache was last seen to hold. */
import type { Health } from '../contract/status.ts';
import type { LiveShare } from '../contract/shares.ts';
import type { Mount, PendingFiles, ShareSpec } from '../contract/mount.ts';
import { holdMount } from './active-mount.ts';
import type { ActiveMount } from './active-mount.ts';
import type { Inbox } from './inbox.ts';
import type { RunnerEnvironment } from './environment.ts';

export interface ShareHoldingOptions {
  readonly around: RunnerEnvironment;
  /** Told when the mount has exited or hangs. */
  readonly inbox: Inbox;
  /** Dirty files on the disk, whichever mount of the share they belong to. */
  readonly pending: () => Promise<number>;
}

export class ShareHolding {
  readonly #options: ShareHoldingOptions;
  #active: ActiveMount | undefined;
  #exitReason = '';
  #left: PendingFiles | undefined;
  #filesOnDisk = 0;

  constructor(options: ShareHoldingOptions) {
    this.#options = options;
  }

  get held(): ActiveMount | undefined {
    return this.#active;
  }

  /** Why the last mount's process has ended. */
  get exitReason(): string {
    return this.#exitReason;
  }

  /** What its cache held after it was last taken down; undefined when that is not known. */
  get left(): PendingFiles | undefined {
    return this.#left;
  }

  /** Dirty files in its cache as last seen; counts as long as no mount tells. */
  get filesOnDisk(): number {
    return this.#filesOnDisk;
  }

  hold(mount: Mount, spec: ShareSpec | undefined): ActiveMount {
    const { around, inbox, pending } = this.#options;
    const isHere = (): boolean => this.#active?.mount === mount;
    this.#active = holdMount(around, {
      mount,
      spec,
      pending,
      onHung: () => void (isHere() && inbox.put('hung')),
      onExited: (reason) => {
        if (!isHere()) return;
        this.#exitReason = reason;
        inbox.put('exited');
      },
    });
    this.#left = undefined;
    return this.#active;
  }

  letGo(held: ActiveMount): void {
    held.watch.stop();
    this.#active = undefined;
    this.#filesOnDisk = (held.watch.stats?.dirtyFiles ?? this.#filesOnDisk) + held.watch.strandedFiles;
    this.#options.inbox.take('exited', 'hung');
  }

  /** The mount is down; what its cache held then. */
  tookDown(left: PendingFiles | undefined): void {
    this.#left = left;
    if (left) this.#filesOnDisk = left.count;
  }

  /** Found on disk while the share is not mounted; undefined while the disk has not been read. */
  foundOnDisk(count: number | undefined): void {
    if (count !== undefined && !this.#active) this.#filesOnDisk = count;
  }

  /** Leaves the mount as it is, for the next daemon. */
  release(): void {
    this.#active?.watch.stop();
    this.#active?.mount.release();
  }

  /** The share as plugins see it. */
  live(spec: ShareSpec, health: Health): LiveShare {
    const watch = this.#active?.watch;
    return {
      spec,
      health,
      mount: this.#active?.mount,
      remoteAnswers: watch?.remoteAnswers,
      remoteTookMs: watch?.remoteTookMs,
      remoteEvidence: watch?.remoteEvidence,
      figures: watch?.figures,
    };
  }
}
