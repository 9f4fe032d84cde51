import { pause } from 'mountkeeper/sdk';
import type { CacheView, Clock } from 'mountkeeper';

const LOOK_EVERY_MS = 250;
/** A mount may save its metadata only some seconds after the last reader has closed the file. */
const WRITTEN_WITHIN_MS = 12_000;

export interface Awaited {
  readonly path: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

export interface VerifierParts {
  readonly view: Pick<CacheView, 'isWhole'>;
  readonly clock: Clock;
  readonly onWhole: (file: Awaited) => void;
  readonly onMissing: (file: Awaited) => void;
}

/** Counts a file as cached only when it is complete in the cache on disk. */
export class Verifier {
  readonly #parts: VerifierParts;
  readonly #waiting = new Map<Awaited, number>();

  constructor(parts: VerifierParts) {
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Call it for a file that was read to its end. */
  expect(file: Awaited): void {
    this.#waiting.set(file, this.#parts.clock.monotonic() + WRITTEN_WITHIN_MS);
  }

  look(): void {
    const { view, clock, onWhole, onMissing } = this.#parts;
    const nowMs = clock.monotonic();
    for (const [file, untilMs] of this.#waiting) {
      const isWhole = view.isWhole(file.path, file);
      if (!isWhole && nowMs < untilMs) continue;
      this.#waiting.delete(file);
      (isWhole ? onWhole : onMissing)(file);
    }
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.look();
      await pause(this.#parts.clock, LOOK_EVERY_MS, signal);
    }
  }
}
