/**
 * What many looks in a row have shown, where none of them was whole: people never cease to rename, and what waits for a
 * whole look would wait for ever. One such look may miss a file under both of its names; so many in a row do not.
 */
import type { Clock } from 'mountkeeper';

const LOOKS = 20;
const SPAN_MS = 60_000;

/** Of which names a look can be believed. */
export type Sure = ReadonlySet<string> | 'all';

interface Shown {
  readonly looks: number;
  /** Of the first of them, in monotonic milliseconds. */
  readonly sinceMs: number;
}

export class RepeatedLooks {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #shown: ReadonlyMap<string, Shown> = new Map();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * A scan takes time: it may miss a file under both its former and its new name when it is renamed meanwhile, and an
   * apparent deletion or replacement could be the only copy of a renamed file. Resolves with those of `names`, which
   * this look shows, of which it can be believed: all where it is still, else what more than 20 looks in a row have
   * shown, for more than a minute. One that a look does not show begins anew.
   */
  async sureOf(names: readonly string[], isStill: () => Promise<boolean>): Promise<Sure> {
    if (names.length > 0 && !(await isStill())) return this.#often(names);
    this.#shown = new Map();
    return 'all';
  }

  #often(names: readonly string[]): ReadonlySet<string> {
    const now = this.#clock.monotonic();
    const former = this.#shown;
    this.#shown = new Map(
      names.map((name): [string, Shown] => {
        const { looks, sinceMs } = former.get(name) ?? { looks: 0, sinceMs: now };
        return [name, { looks: looks + 1, sinceMs }];
      }),
    );
    const isOften = ({ looks, sinceMs }: Shown): boolean => looks > LOOKS && now - sinceMs > SPAN_MS;
    return new Set([...this.#shown].filter(([, one]) => isOften(one)).map(([name]) => name));
  }
}

export function isSureOf(name: string, sure: Sure): boolean {
  return sure === 'all' || sure.has(name);
}
