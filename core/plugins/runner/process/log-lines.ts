/** What a runner logs and prints, in the daemon's log under its plugin's name; not more than is readable. */
import type { Clock, Logger } from '../../../contract/platform.ts';
import { textOf } from '../protocol.ts';
import { Budget, plainCopy } from '../../instance/given-values.ts';

const MOST_A_SECOND = 50;
const LONGEST = 8_192;
const MOST_VALUES = 200;
const LEVELS: ReadonlySet<string> = new Set(['fatal', 'error', 'warn', 'info', 'debug', 'trace']);

export class LogLines {
  readonly #clock: Clock;
  readonly #log: Logger;
  #sinceMs = -Infinity;
  #lines = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** One call of `ctx.log`. */
  logged({ level, message, fields }: { level: unknown; message: unknown; fields: unknown }): void {
    if (!this.#hasRoom()) return;
    const at = (LEVELS.has(level as string) ? level : 'info') as 'info';
    this.#log[at](fieldsIn(fields), textOf(message, LONGEST));
  }

  /** One line of its standard output or error. */
  printed(line: string): void {
    if (this.#hasRoom()) this.#log.info({ line: line.slice(0, LONGEST) }, 'the plugin printed a line');
  }

  #hasRoom(): boolean {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#sinceMs > 1_000) {
      if (this.#lines > MOST_A_SECOND)
        this.#log.warn(
          { lines: this.#lines - MOST_A_SECOND },
          'the plugin logs too much; lines were left out',
        );
      this.#sinceMs = nowMs;
      this.#lines = 0;
    }
    this.#lines += 1;
    return this.#lines <= MOST_A_SECOND;
  }
}

/** What a line's own keys are, stays the core's. */
function fieldsIn(fields: unknown): object {
  try {
    const { plugin, time, level, msg, pid, hostname, ...own } = plainCopy(
      fields,
      new Budget(MOST_VALUES, LONGEST),
    ) as Record<string, unknown>;
    void [plugin, time, level, msg, pid, hostname];
    return own;
  } catch (error) {
    return { unfit: (error as Error).message };
  }
}
