/**
 * Looks again and again whether what lies below a share answers through bindfs: users come to the NAS by no other
 * way, and the figures are got past it.
 */
import { logIgnored, rest } from 'mountkeeper';
import type { Clock, Logger, MountReader, MountTable } from 'mountkeeper';
import type { StackPaths } from '../paths.ts';

const EVERY_MS = 10_000;
/** After a look without an answer. */
const AGAIN_MS = 1_000;
const ANSWER_MS = 4_000;
/** One alone may be a machine that is short of time. */
const LOOKS_WITHOUT = 2;
const NO_ANSWER = 'what is on the NAS cannot be read: what lies below the share does not answer';

export interface AnswersOptions {
  readonly stack: Pick<StackPaths, 'lower' | 'place'>;
  readonly mountReader: Pick<MountReader, 'touch' | 'waiting'>;
  readonly mountTable: Pick<MountTable, 'find'>;
  /** bindfs is stopped for a moment, on purpose. */
  readonly isHeld: () => boolean;
  readonly log: Logger;
}

export class Answers {
  readonly #options: AnswersOptions;
  #without = 0;

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  /** Undefined while it answers. */
  get problem(): string | undefined {
    return this.#without >= LOOKS_WITHOUT ? NO_ANSWER : undefined;
  }

  /** Looks until `end` aborts. Never rejects: where nothing can be told, nothing is wrong. */
  async run(clock: Clock, end: AbortSignal): Promise<void> {
    const { log, stack } = this.#options;
    while (!end.aborted) {
      await rest(clock, this.#without === 0 ? EVERY_MS : AGAIN_MS, end);
      if (end.aborted) return;
      await this.look().catch(logIgnored(log, 'look below a share', { path: stack.lower }));
    }
  }

  async look(): Promise<void> {
    const { isHeld, stack } = this.#options;
    if (isHeld()) return;
    if (await this.#answers(stack.lower)) this.#without = 0;
    // An rclone that gives no answer itself is replaced when there are no figures.
    else if (!isHeld() && !((await this.#answers(stack.place)) && (await this.#waitsForNas())))
      this.#without += 1;
  }

  /** Rejects with a `TimeoutError` where bindfs gives no answer in time. rclone below it has just given one. */
  async checkBindfs(timeoutMs: number): Promise<void> {
    const { mountReader, stack } = this.#options;
    await mountReader.touch(stack.lower, { timeoutMs }).catch(async (error: unknown) => {
      // Another error is an answer, too: there may be no rclone just now.
      if (isTimeout(error) && !(await this.#waitsForNas())) throw error;
    });
  }

  /** bindfs has few threads: calls that wait in rclone for the NAS may have taken them all, and end by themselves. */
  async #waitsForNas(): Promise<boolean> {
    const { mountReader, mountTable, stack } = this.#options;
    const rclone = await mountTable.find(stack.place);
    return rclone !== undefined && (await mountReader.waiting(rclone.deviceMinor)) > 0;
  }

  async #answers(path: string): Promise<boolean> {
    try {
      await this.#options.mountReader.touch(path, { timeoutMs: ANSWER_MS });
      return true;
    } catch (error) {
      // Another error is an answer, too.
      return !isTimeout(error);
    }
  }
}

function isTimeout(error: unknown): boolean {
  return (error as Error).name === 'TimeoutError';
}
