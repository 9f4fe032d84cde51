/** What a runner logs and prints, in the daemon's log under its plugin's name; not more than is readable. */
import type { Clock, Logger } from '../../../contract/platform.ts';
import { Allowance } from '../../../platform/allowance.ts';
import { textOf } from '../protocol.ts';
import { Budget, plainCopy } from '../../instance/given-values.ts';

/** As much as the log takes of a stranger, so that nobody has to write out the rest. */
const LINES = { most: 50, everyMs: 1_000 };
const CHARACTERS = { most: 1_048_576, everyMs: 60_000 };
const LONGEST = 8_192;
const MOST_VALUES = 200;
const LEVELS: ReadonlySet<string> = new Set(['fatal', 'error', 'warn', 'info', 'debug', 'trace']);

export class LogLines {
  readonly #log: Logger;
  readonly #lines: Allowance;
  readonly #characters: Allowance;
  #leftOut = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, log: Logger) {
    this.#log = log;
    this.#lines = new Allowance(clock, LINES);
    this.#characters = new Allowance(clock, CHARACTERS);
  }

  /** One call of `ctx.log`. */
  logged({ level, message, fields }: { level: unknown; message: unknown; fields: unknown }): void {
    if (!this.#isInTime()) return;
    const at = (LEVELS.has(level as string) ? level : 'info') as 'info';
    const [own, text] = [fieldsIn(fields), textOf(message, LONGEST)];
    if (this.#hasRoom(text.length + JSON.stringify(own).length)) this.#log[at](own, text);
  }

  /** One line of its standard output or error. */
  printed(line: string): void {
    if (this.#isInTime() && this.#hasRoom(Math.min(line.length, LONGEST)))
      this.#log.info({ line: line.slice(0, LONGEST) }, 'the plugin printed a line');
  }

  /** It says nothing more. What was left out last may have been the reason. */
  ended(): void {
    this.#tellLeftOut();
  }

  #isInTime(): boolean {
    const isInTime = this.#lines.take();
    if (!isInTime) this.#leftOut += 1;
    else if (this.#lines.isFresh) this.#tellLeftOut();
    return isInTime;
  }

  #hasRoom(characters: number): boolean {
    const isRoom = this.#characters.take(characters);
    if (!isRoom) this.#leftOut += 1;
    return isRoom;
  }

  #tellLeftOut(): void {
    if (this.#leftOut > 0)
      this.#log.warn({ lines: this.#leftOut }, 'the plugin logs too much; lines were left out');
    this.#leftOut = 0;
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
