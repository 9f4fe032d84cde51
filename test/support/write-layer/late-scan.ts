/** Short commands as the daemon runs them; the result of one scan of the upper folder can be held back. */
import type { Processes } from 'mountkeeper';
import { processes } from './uploader-share.ts';

export class LateScan implements Pick<Processes, 'run'> {
  #isNext = false;
  #goOn = (): void => undefined;
  #held = (): void => undefined;
  /** Resolves when the scan has been read, and waits. */
  isHeld: Promise<void> = Promise.resolve();

  holdNext(): void {
    this.#isNext = true;
    this.isHeld = new Promise((resolve) => (this.#held = resolve));
  }

  goOn(): void {
    this.#goOn();
  }

  async run(spec: Parameters<Processes['run']>[0]): ReturnType<Processes['run']> {
    const result = await processes.run(spec);
    if (!this.#isNext || spec.command !== 'find') return result;
    this.#isNext = false;
    const end = new Promise<void>((resolve) => (this.#goOn = resolve));
    this.#held();
    await end;
    return result;
  }
}
