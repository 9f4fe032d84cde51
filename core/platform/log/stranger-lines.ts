/**
 * How much of the log is about one third party's plugin, whoever writes the line: what it logs and prints, and what the
 * daemon says of it, may hold texts of the plugin's own, other ones each time.
 */
import type { Clock } from '../../contract/platform.ts';
import { Allowance } from '../allowance.ts';

/** Twice what a runner may have written (`log-lines.ts`): the daemon says of it why it has ended all the same. */
const LINES = { most: 100, everyMs: 1_000 };
/** At 100 long lines a second, a plugin would write 140 GB in a day. */
const CHARACTERS = { most: 2 * 1_048_576, everyMs: 60_000 };

interface Told {
  readonly lines: Allowance;
  readonly characters: Allowance;
  leftOut: number;
}

export class StrangerLines {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #told = new Map<string, Told>();
  /** Asked when there were too many: most plugins never get there. */
  isStranger: (plugin: string) => boolean = () => false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** How many lines about the plugin were left out before this one; undefined where this one is, too. */
  take(plugin: string, characters: number): number | undefined {
    const told = this.#toldOf(plugin);
    // Both count it.
    const hasRoom = [told.lines.take(), told.characters.take(characters)].every(Boolean);
    if (!hasRoom && this.isStranger(plugin)) {
      told.leftOut += 1;
      return undefined;
    }
    const { leftOut } = told;
    told.leftOut = 0;
    return leftOut;
  }

  #toldOf(plugin: string): Told {
    const known = this.#told.get(plugin);
    if (known) return known;
    const made = {
      lines: new Allowance(this.#clock, LINES),
      characters: new Allowance(this.#clock, CHARACTERS),
      leftOut: 0,
    };
    this.#told.set(plugin, made);
    return made;
  }
}
