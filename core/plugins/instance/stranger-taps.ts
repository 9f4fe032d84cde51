/**
 * Taps of third parties' plugins. Nobody waits for one after the other of them: what comes with Mountkeeper hears of
 * each cycle and each event however slow they are, and however many.
 */
import type { Clock, Logger } from '../../contract/platform.ts';
import { timeBoxOr } from '../../platform/deadline.ts';
import type { TapEntry } from './ledger.ts';

/** As long as a cycle waits for an answer. */
const ANSWER_MS = 200;
/** A mount waits for all that may veto it, side by side. */
const VETO_MS = 2_000;
/** Who was late with a veto is not asked for so long: the next mounts need not wait. */
const REST_MS = 60_000;
/** One that is slow is named for one hook at most this often. */
const SAY_EVERY_MS = 3_600_000;

export interface StrangerTap {
  readonly plugin: string;
  /** The same in each projection. */
  readonly entry: TapEntry;
}

/** What is known of one tap. */
interface Asked {
  /** The call that goes on; it ends when the patience with it does, at the latest. */
  underWay?: Promise<void> | undefined;
  answer?: readonly unknown[] | undefined;
  restsUntilMs: number;
  saidMs: number;
}

/** What it is given to call has a time limit of its own, says in the log what went wrong, and never rejects. */
export class StrangerTaps {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #asked = new WeakMap<TapEntry, Asked>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Calls it, and waits for nothing. Each event counts, but for cycles: it misses those that come meanwhile. */
  tell(tap: StrangerTap, call: () => Promise<unknown>): void {
    if (tap.entry.hook !== 'afterCycle') return void call();
    const asked = this.#of(tap);
    if (asked.underWay)
      return this.#sayOnce(tap, 'plugin takes longer than a cycle in a hook; it misses cycles');
    asked.underWay = call().then(() => {
      asked.underWay = undefined;
    });
  }

  /** What it answers now where that comes soon; else its last answer stands until it is there. */
  async answer(
    tap: StrangerTap,
    ask: () => Promise<readonly unknown[] | undefined>,
  ): Promise<readonly unknown[] | undefined> {
    const asked = this.#of(tap);
    if (asked.underWay) return asked.answer;
    asked.underWay = ask().then((answer) => {
      asked.underWay = undefined;
      asked.answer = answer;
    });
    await timeBoxOr(this.#clock, ANSWER_MS, asked.underWay, () =>
      this.#sayOnce(tap, 'plugin answers a hook slowly; until it has, its last answer stands'),
    );
    return asked.answer;
  }

  /** Its reason; undefined where it has none, is late, or was late a while ago. */
  async veto(tap: StrangerTap, ask: () => Promise<string | undefined>): Promise<string | undefined> {
    const asked = this.#of(tap);
    if (this.#clock.monotonic() < asked.restsUntilMs) return undefined;
    return timeBoxOr(this.#clock, VETO_MS, ask(), () => this.#rest(tap, asked));
  }

  /** Of mounts that wait at the same time the first says so. */
  #rest({ plugin, entry: { hook } }: StrangerTap, asked: Asked): undefined {
    const nowMs = this.#clock.monotonic();
    if (nowMs < asked.restsUntilMs) return;
    asked.restsUntilMs = nowMs + REST_MS;
    this.#log.error(
      { plugin, hook, waitedMs: VETO_MS, restsMs: REST_MS },
      'plugin did not answer in time whether it objects; it was not waited for, and is not asked for a minute',
    );
  }

  #sayOnce({ plugin, entry }: StrangerTap, sentence: string): void {
    const asked = this.#of({ plugin, entry });
    const nowMs = this.#clock.monotonic();
    if (nowMs - asked.saidMs < SAY_EVERY_MS) return;
    asked.saidMs = nowMs;
    this.#log.warn({ plugin, hook: entry.hook }, sentence);
  }

  #of({ entry }: StrangerTap): Asked {
    const asked = this.#asked.get(entry) ?? { restsUntilMs: -Infinity, saidMs: -Infinity };
    this.#asked.set(entry, asked);
    return asked;
  }
}
