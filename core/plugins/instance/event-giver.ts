/** The events that one plugin gives: checked here, by their schema in the process in which the plugin runs. */
import type { Clock, Logger } from '../../contract/platform.ts';
import { Allowance } from '../../platform/allowance.ts';
import { reasonOf } from '../../sdk/reason-of.ts';
import { Budget, refusePromise, UnfitValue } from './given-values.ts';
import type { EventEntry } from './ledger.ts';

const MOST_VALUES = 1_000;
const MOST_CHARACTERS = 16_384;
/** Plugins that answer each other's events must not take the whole processor. */
const MOST = { most: 100, everyMs: 1_000 };

export interface EventGiverOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly give: (event: EventEntry, value: unknown) => void;
}

export class EventGiver {
  readonly #options: EventGiverOptions;
  /** The last reason that was logged for each event. */
  readonly #told = new Map<string, string>();
  readonly #given: Allowance;

  constructor(options: EventGiverOptions) {
    this.#options = options;
    this.#given = new Allowance(options.clock, MOST);
  }

  /** Never throws: what a plugin tells others must not end what it does itself. */
  give(event: EventEntry, value: unknown): void {
    try {
      // First: a check takes time as well.
      if (!this.#given.take())
        throw new UnfitValue(`comes too often: ${MOST.most} events a second are the most of one plugin`);
      const copy = eventValue(event, value);
      this.#told.delete(event.name);
      this.#options.give(event, copy);
    } catch (error) {
      this.#refuse(event.name, error);
    }
  }

  #refuse(event: string, why: unknown): void {
    const reason = reasonOf(why);
    if (this.#told.get(event) === reason) return;
    this.#told.set(event, reason);
    this.#options.log.error(
      { event, reason },
      'what the plugin gives as an event cannot be used; nobody is told',
    );
  }
}

/** A copy as plain data that fits the event's schema. Throws an `UnfitValue`. */
function eventValue({ value: schema }: EventEntry, given: unknown): unknown {
  refusePromise(given);
  const copy = new Budget(MOST_VALUES, MOST_CHARACTERS).copy(given);
  const { error, value } = schema.validate(copy, { convert: false, errors: { wrap: { label: false } } });
  if (error) throw new UnfitValue(`does not fit its schema: ${error.message}`);
  return value as unknown;
}
