/** Whether the processes below a share's overlay answer, and what is done with one that does not. */
import { rest } from 'mountkeeper';
import type { Clock, Logger, ManagedProcess, MountReader, MountTable } from 'mountkeeper';
import { UnreadableFolders } from '../../outage/unreadable-folders.ts';
import type { Hold } from '../bindfs/hold.ts';
import { isStopped, LONGEST_HOLD_MS } from '../bindfs/hold.ts';
import type { LowerSupervisor } from '../lower-supervisor.ts';
import { overlaySource } from '../overlay.ts';
import type { StackPaths } from '../paths.ts';
import type { ActiveMount } from '../../lifecycle/active-mount.ts';
import { Answers } from './answers.ts';
import { SilentControl } from './silent-control.ts';

export const NOT_PASSED_ON = 'bindfs below the share has ended';

export interface HealthOptions {
  readonly shareName: string;
  readonly mountPoint: string;
  readonly stack: StackPaths;
  readonly bindfs: Pick<ManagedProcess, 'isAlive' | 'pid'>;
  readonly hold: Pick<Hold, 'isBegun'>;
  readonly supervisor: LowerSupervisor;
  readonly tools: {
    readonly mountReader: Pick<MountReader, 'touch' | 'waiting'>;
    readonly mountTable: Pick<MountTable, 'find'>;
    readonly clock: Clock;
    readonly log: Logger;
  };
  /** Aborted with the mount. */
  readonly end: AbortSignal;
}

export class Health {
  readonly #options: HealthOptions;
  readonly #answers: Answers;
  readonly #control: SilentControl<ActiveMount>;
  readonly #unreadable: UnreadableFolders;

  constructor(options: HealthOptions) {
    const { end, hold, mountPoint, shareName, stack, supervisor, tools } = options;
    this.#options = options;
    this.#answers = new Answers({ ...tools, stack, isHeld: () => hold.isBegun });
    this.#control = new SilentControl(tools.clock, (living, why) => supervisor.replace(living, why));
    this.#unreadable = new UnreadableFolders({
      ...tools,
      shareName,
      mountPoint,
      source: overlaySource(shareName),
      end,
    });
    void this.#answers.run(tools.clock, end);
  }

  /** Somebody else has stopped bindfs. */
  get isStopped(): boolean {
    const { bindfs, hold } = this.#options;
    return !hold.isBegun && isStopped(bindfs.pid);
  }

  /** Why what is on the NAS alone cannot be read. */
  get problem(): string | undefined {
    return this.#answers.problem;
  }

  /** The remote control of the living rclone has answered just now. */
  controlAnswered(): void {
    this.#control.answered();
  }

  async checkRemote(signal: AbortSignal): Promise<void> {
    const { supervisor } = this.#options;
    try {
      const lower = await supervisor.obtain(signal);
      await lower.checkRemote(signal);
      this.#unreadable.set('answers');
    } catch (error) {
      this.#unreadable.set(supervisor.living?.isShut === true ? 'shut' : 'doubtful');
      throw error;
    }
  }

  /**
   * An rclone that hangs is replaced below the share, which keeps answering: only bindfs and the overlay
   * count. bindfs is asked itself, since the overlay knows its own root without it.
   */
  async checkAlive(timeoutMs: number): Promise<void> {
    const { bindfs, hold, mountPoint, supervisor, tools } = this.#options;
    if (!bindfs.isAlive()) throw new Error(NOT_PASSED_ON);
    const lower = supervisor.living;
    const hangs =
      (await lower?.checkAlive(timeoutMs).then(
        () => false,
        () => true,
      )) === true;
    // bindfs has waited for it, and is held until another is up: it is asked at the next check.
    if (lower && hangs) return supervisor.replace(lower, 'rclone does not answer');
    try {
      await this.#answers.checkBindfs(timeoutMs);
      await tools.mountReader.touch(mountPoint, { timeoutMs });
    } catch (error) {
      // Calls may wait for longer than that while something is moved: asked again at the next check.
      if (!hold.isBegun) throw error;
    }
    if (lower) await this.#control.check(lower);
  }

  /** Without an rclone nothing can be read; the first check of the next one's remote says whether that is over. */
  async lowerIsDown(): Promise<void> {
    const { end, supervisor, tools } = this.#options;
    await rest(tools.clock, LONGEST_HOLD_MS, end);
    if (!supervisor.living) this.#unreadable.set('doubtful');
  }
}
