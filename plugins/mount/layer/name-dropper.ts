/**
 * Has the kernel drop the names that it keeps of a share's overlay after each change of what lies below, one
 * drop after the other.
 */
import type { MountTools } from '../lifecycle/tools.ts';
import { dropNames } from './overlay.ts';
import type { OverlaySpec } from './overlay.ts';

export interface NameDropperOptions {
  readonly shareName: string;
  readonly mountPoint: string;
  readonly flags: Pick<OverlaySpec, 'exec' | 'readOnly'>;
  readonly tools: MountTools;
  /** Dropping names makes the overlay writable: not when it has been frozen, or ends. */
  readonly isOver: () => boolean;
}

export class NameDropper {
  readonly #options: NameDropperOptions;
  #dropping: Promise<void> | undefined;
  #isDue = false;

  constructor(options: NameDropperOptions) {
    this.#options = options;
  }

  /** One that comes while names are being dropped has them dropped once more. Never rejects. */
  async drop(): Promise<void> {
    this.#isDue = true;
    this.#dropping ??= this.#dropWhileDue().finally(() => (this.#dropping = undefined));
    await this.#dropping;
  }

  /** Resolves when none is under way. */
  async dropped(): Promise<void> {
    await this.#dropping;
  }

  async #dropWhileDue(): Promise<void> {
    const { flags, isOver, mountPoint, shareName: share, tools } = this.#options;
    while (this.#isDue && !isOver()) {
      this.#isDue = false;
      await dropNames(mountPoint, { exec: flags.exec, readOnly: flags.readOnly }, tools).catch(
        (error: unknown) =>
          tools.log.warn({ share, err: error }, 'names not dropped, some may show what was before'),
      );
    }
  }
}
