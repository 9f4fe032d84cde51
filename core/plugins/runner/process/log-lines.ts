/** What a runner logs and prints, in the daemon's log under its plugin's name; not more than is readable. */
import type { Clock, Logger } from '../../../contract/platform.ts';
import { textOf } from '../protocol.ts';
import { Budget, plainCopy } from '../../instance/given-values.ts';

const MOST_A_SECOND = 50;
const SECOND_MS = 1_000;
/** In characters. At 50 long lines a second, a plugin would write 70 GB in a day. */
const MOST_A_MINUTE = 1_048_576;
const MINUTE_MS = 60_000;
const LONGEST = 8_192;
const MOST_VALUES = 200;
const LEVELS: ReadonlySet<string> = new Set(['fatal', 'error', 'warn', 'info', 'debug', 'trace']);

export class LogLines {
  readonly #clock: Clock;
  readonly #log: Logger;
  #second = { sinceMs: -Infinity, lines: 0 };
  #minute = { sinceMs: -Infinity, characters: 0 };
  #leftOut = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
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
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#second.sinceMs > SECOND_MS) {
      this.#second = { sinceMs: nowMs, lines: 0 };
      this.#tellLeftOut();
    }
    this.#second.lines += 1;
    if (this.#second.lines <= MOST_A_SECOND) return true;
    this.#leftOut += 1;
    return false;
  }

  #hasRoom(characters: number): boolean {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#minute.sinceMs > MINUTE_MS) this.#minute = { sinceMs: nowMs, characters: 0 };
    const isRoom = this.#minute.characters + characters <= MOST_A_MINUTE;
    if (isRoom) this.#minute.characters += characters;
    else this.#leftOut += 1;
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
