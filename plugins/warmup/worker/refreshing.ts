/**
 * Has the mount look at folders anew, by way of the daemon: only the mount itself knows which versions users are
 * changing there, and must have them on record before it shows others.
 */
import type { Report } from '../job-description.ts';

export class Refreshing {
  readonly #tell: (report: Report) => void;
  readonly #waiting = new Map<number, () => void>();
  #last = 0;
  #queue: Promise<void> = Promise.resolve();

  constructor(tell: (report: Report) => void) {
    this.#tell = tell;
  }

  /** Resolves when it is done, or could not be: reading shows it. One after the other. */
  refresh(folder: string, isDeep: boolean): Promise<void> {
    this.#queue = this.#queue.then(() => this.#ask(folder, isDeep));
    return this.#queue;
  }

  /** Call it when the daemon says so. */
  done(id: number): void {
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }

  #ask(folder: string, isDeep: boolean): Promise<void> {
    const id = (this.#last += 1);
    const answer = new Promise<void>((resolve) => this.#waiting.set(id, resolve));
    this.#tell({ kind: 'refresh', id, folder, isDeep });
    return answer;
  }
}
