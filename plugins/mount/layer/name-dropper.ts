/**
 * Makes the kernel drop the names that it caches for a share's overlay, after each change of the lower
 * layer, one drop after the other.
 */
import type { MountTools } from '../lifecycle/tools.ts';
import { dropNames } from './overlay.ts';
import type { OverlaySpec } from './overlay.ts';

export interface NameDropperOptions {
  readonly shareName: string;
  readonly mountPoint: string;
  readonly flags: Pick<OverlaySpec, 'exec' | 'readOnly'>;
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
    this.#dropping ??= this.#dropWhileDue().finally(() => (this.#dropping = undefined));
    await this.#dropping;
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
  }
}
