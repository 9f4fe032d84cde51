/** What a share holds now: its living mount if it has one, and what its cache was last seen to hold. */
import type { Health, LiveShare, Mount, PendingFiles, ShareSpec } from './api.ts';
import { holdMount } from './share-held.ts';
import type { Held } from './share-held.ts';
import type { Inbox } from './share-inbox.ts';
import type { RunnerSurroundings } from './share-surroundings.ts';

export interface ShareHoldingOptions {
  readonly around: RunnerSurroundings;
  /** Told when the mount has exited or hangs. */
  readonly inbox: Inbox;
  /** Dirty files on the disk, whichever mount of the share they belong to. */
  readonly pending: () => Promise<number>;
}

export class ShareHolding {
  readonly #options: ShareHoldingOptions;
  #held: Held | undefined;
  #exitReason = '';
  #left: PendingFiles | undefined;
  #filesOnDisk = 0;

  constructor(options: ShareHoldingOptions) {
    this.#options = options;
  }

  get held(): Held | undefined {
    return this.#held;
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

  hold(mount: Mount, spec: ShareSpec | undefined): Held {
    const { around, inbox, pending } = this.#options;
    const isHere = (): boolean => this.#held?.mount === mount;
    this.#held = holdMount(around, {
      mount, spec, pending,
      onHung: () => void (isHere() && inbox.put('hung')),
      onExited: (reason) => {
        if (!isHere()) return;
        this.#exitReason = reason;
        inbox.put('exited');
      },
    });
    this.#left = undefined;
    return this.#held;
  }

  letGo(held: Held): void {
    held.watch.stop();
    this.#held = undefined;
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
    if (count !== undefined && !this.#held) this.#filesOnDisk = count;
  }

  /** Leaves the mount as it is, for the next daemon. */
  release(): void {
    this.#held?.watch.stop();
    this.#held?.mount.release();
  }

  /** The share as plugins see it. */
  live(spec: ShareSpec, health: Health): LiveShare {
    const watch = this.#held?.watch;
    return { spec, health, mount: this.#held?.mount, remoteAnswers: watch?.remoteAnswers, remoteTookMs: watch?.remoteTookMs, remoteEvidence: watch?.remoteEvidence, figures: watch?.figures };
  }
}
