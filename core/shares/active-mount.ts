/**
 * What a share has mounted now, and what its cache was last seen to hold: the one owner of a share's state
 * apart from its health.
 */
import type { Mount, PendingFiles, RemoteFailure, ShareSpec } from '../contract/mount.ts';
import type { LiveShare } from '../contract/shares.ts';
import type { Health } from '../contract/status.ts';
import type { RunnerEnvironment } from './environment.ts';
import type { Inbox } from './inbox.ts';
import { ShareMonitor } from './monitor.ts';

export interface ActiveMount {
  readonly mount: Mount;
  readonly watch: ShareMonitor;
  /** The spec it was mounted with; for an adopted mount known only when it leads to the same remote path. */
  readonly spec: ShareSpec | undefined;
  readonly mountedAtMs: number;
  /** New writes are refused; only mounting again undoes it. */
  isFrozen: boolean;
  /** Seen clean after it was frozen: nothing waits to be uploaded by these settings. */
  isDrained: boolean;
}

export interface MountedShareOptions {
  readonly around: RunnerEnvironment;
  /** Gets a message when the mount has exited or hangs. */
  readonly inbox: Inbox;
  /** Dirty files on the disk, from all mounts of the share. */
  readonly pending: () => Promise<number>;
  /** The remote has begun or ceased to answer, or files were counted. */
  readonly onChange: () => void;
}

export class MountedShare {
  readonly #options: MountedShareOptions;
  #active: ActiveMount | undefined;
  #exitReason = '';
  #left: PendingFiles | undefined;
  #filesOnDisk = 0;
  #isCounted = false;

  constructor(options: MountedShareOptions) {
    this.#options = options;
  }

  get active(): ActiveMount | undefined {
    return this.#active;
  }

  /** Why the last mount's process has ended. */
  get exitReason(): string {
    return this.#exitReason;
  }

  /** What its cache held after the last unmount; undefined when that is unknown. */
  get left(): PendingFiles | undefined {
    return this.#left;
  }

  /** Dirty files in its cache as last seen; counts as long as no mount tells. */
  get filesOnDisk(): number {
    return this.#filesOnDisk;
  }

  /** False until its dirty files have been counted once, by a mount or on the disk. */
  get isCounted(): boolean {
    return this.#isCounted;
  }

  /** `probeFailure`: the remote did not answer when it was mounted. */
  hold(mount: Mount, spec: ShareSpec | undefined, probeFailure?: RemoteFailure): ActiveMount {
    const { around, inbox, pending, onChange } = this.#options;
    const isHere = (): boolean => this.#active?.mount === mount;
    this.#active = watchMount(around, {
      mount,
      spec,
      pending,
      probeFailure,
      onChange,
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

  letGo(active: ActiveMount): void {
    active.watch.stop();
    this.#active = undefined;
    if (active.watch.stats) this.#isCounted = true;
    this.#filesOnDisk = (active.watch.stats?.dirtyFiles ?? this.#filesOnDisk) + active.watch.strandedFiles;
    this.#options.inbox.take('exited', 'hung');
  }

  /** The mount has ended; `left` is what its cache held then. */
  tookDown(left: PendingFiles | undefined): void {
    this.#left = left;
    if (left) this.#count(left.count);
  }

  /** Found on disk while the share is not mounted; undefined while the disk has not been read. */
  foundOnDisk(count: number | undefined): void {
    if (count !== undefined && !this.#active) this.#count(count);
  }

  #count(files: number): void {
    this.#filesOnDisk = files;
    this.#isCounted = true;
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

interface ActiveMountOptions {
  readonly mount: Mount;
  readonly spec: ShareSpec | undefined;
  readonly pending: () => Promise<number>;
  readonly probeFailure: RemoteFailure | undefined;
  readonly onChange: () => void;
  readonly onHung: () => void;
  readonly onExited: (reason: string) => void;
}

function watchMount(around: RunnerEnvironment, options: ActiveMountOptions): ActiveMount {
  const { clock, log } = around;
  const { mount, spec, pending, probeFailure, onChange, onHung } = options;
  const watch = new ShareMonitor({
    mount,
    clock,
    log,
    onChange,
    onHung,
    pending,
    probeFailure,
    isFrozen: () => active.isFrozen,
  });
  const active: ActiveMount = {
    mount,
    spec,
    watch,
    mountedAtMs: clock.monotonic(),
    isFrozen: mount.isFrozen === true,
    isDrained: false,
  };
  void mount.exited.then(options.onExited);
  return active;
}
