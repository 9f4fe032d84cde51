/**
 * Brings the upper folder to the disk before anything is put on record, or done on the remote, because of what a scan
 * has seen there. A power cut that took the one and left the other would make it a deletion by users: of what they
 * renamed, the only content.
 */
import { unlessAborted } from 'mountkeeper';
import type { WriteLayer } from 'mountkeeper';

export class WrittenOut {
  readonly #layer: Pick<WriteLayer, 'onDisk'>;
  #done: Promise<void> | undefined;

  constructor(layer: Pick<WriteLayer, 'onDisk'>) {
    this.#layer = layer;
  }

  /** Call it at the end of each scan: what that has seen may not be on the disk yet. */
  scanned(): void {
    this.#done = undefined;
  }

  /**
   * Once for each scan at most. Rejects where the disk cannot be written out, and when the signal aborts; the next call
   * tries again.
   */
  async now(signal: AbortSignal): Promise<void> {
    // Else nobody would hear of a disk that fails.
    signal.throwIfAborted();
    const done = (this.#done ??= this.#layer.onDisk?.() ?? Promise.resolve());
    try {
      // A disk that hangs keeps nobody from ending.
      await unlessAborted(signal, done);
    } catch (error) {
      if (this.#done === done) this.#done = undefined;
      throw error;
    }
  }
}
