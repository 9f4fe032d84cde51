import { rest } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import type { OpenFiles } from './open-files.ts';

/**
 * The open files of one mount, for all who look at them again and again: whoever waits for the next look gets that of
 * another.
 */
export class OpenFilesLook {
  readonly #find: () => Promise<OpenFiles>;
  readonly #clock: Clock;
  readonly #waiting = new Set<(files: OpenFiles) => void>();

  constructor(find: () => Promise<OpenFiles>, clock: Clock) {
    this.#find = find;
    this.#clock = clock;
  }

  async now(): Promise<OpenFiles> {
    const files = await this.#find();
    for (const told of this.#waiting) told(files);
    return files;
  }

  /** What somebody sees within `ms`; undefined when nobody looks, or as soon as `end` aborts. Never rejects. */
  async next(ms: number, end: AbortSignal): Promise<OpenFiles | undefined> {
    const over = new AbortController();
    let seen: OpenFiles | undefined;
    const told = (files: OpenFiles): void => {
      seen = files;
      over.abort();
    };
    const onEnd = (): void => over.abort();
    this.#waiting.add(told);
    end.addEventListener('abort', onEnd, { once: true });
    if (end.aborted) over.abort();
    await rest(this.#clock, ms, over.signal);
    end.removeEventListener('abort', onEnd);
    this.#waiting.delete(told);
    return seen;
  }
}
