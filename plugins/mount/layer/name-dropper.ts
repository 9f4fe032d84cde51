/**
 * Makes the kernel drop the names that it caches for a share's overlay, after each change of the lower
 * layer, one drop after the other.
 */
import type { MountTools } from '../lifecycle/tools.ts';
import { dropNames, moveThenDropNames } from './overlay.ts';
import type { DropSpec, Move, MovedAtNs } from './overlay.ts';

export interface NameDropperOptions {
  readonly shareName: string;
  readonly mountPoint: string;
  readonly upper: string;
  readonly flags: DropSpec;
  readonly tools: MountTools;
  /** True once the overlay is frozen or is being unmounted: dropping names would make it writable again. */
  readonly isOver: () => boolean;
}

export class NameDropper {
  readonly #options: NameDropperOptions;
  #dropping: Promise<void> | undefined;
  #isDue = false;

  constructor(options: NameDropperOptions) {
    this.#options = options;
  }

  /** A call during a drop causes one more drop. Never rejects. */
  async drop(): Promise<void> {
    this.#isDue = true;
    this.#dropping ??= Promise.resolve().then(() => this.#dropWhileDue());
    await this.#dropping;
  }

  /**
   * Renames entries of the upper folder and drops the names at once; `begin` is called right before. Resolves with
   * when each was renamed.
   */
  async afterMoves(moves: readonly Move[], begin?: () => Promise<void>): Promise<readonly MovedAtNs[]> {
    const { flags, isOver, mountPoint, tools, upper } = this.#options;
    while (this.#dropping) await this.#dropping;
    const spec = isOver() ? undefined : flags;
    const moving = moveThenDropNames(moves, { upper, mountPoint, spec, begin }, tools);
    // In turn with the drops, which `dropped` waits for.
    this.#dropping = moving
      .then(
        ({ isDropped }) => isDropped,
        // Rejected below; some may have been moved.
        () => false,
      )
      .then((isDropped) => {
        this.#isDue ||= !isDropped;
        return this.#dropWhileDue();
      });
    const { moved } = await moving;
    await this.#dropping;
    return moved;
  }

  /** Resolves when no drop is running. */
  async dropped(): Promise<void> {
    await this.#dropping;
  }

  async #dropWhileDue(): Promise<void> {
    const { flags, isOver, mountPoint, shareName: share, tools } = this.#options;
    while (this.#isDue && !isOver()) {
      this.#isDue = false;
      await dropNames(mountPoint, { exec: flags.exec, readOnly: flags.readOnly }, tools).catch(
        (error: unknown) =>
          tools.log.warn(
            { share, err: error },
            'the kernel kept old names of the overlay; some may show former content',
          ),
      );
    }
    // In one go with the last look at what is due: a later call begins anew.
    this.#dropping = undefined;
  }
}
