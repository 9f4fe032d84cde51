/**
 * Events on their way from the plugin that gives them to those that listen. Each listening plugin has a queue of its
 * own: one that throws, hangs or is slow holds up neither who gives nor anybody else who listens. An event is not
 * kept: who is not up when it is given does not hear of it.
 */
import type { Clock, Logger } from '../../contract/platform.ts';
import { TimeBoxError, timeBox } from '../../platform/deadline.ts';
import { isA, sentence } from '../../platform/log/thrown.ts';
import { createSerialQueue } from '../../platform/serial-queue.ts';
import { StallWatch } from '../../sdk/stall-watch.ts';
import { placeIn } from './ledger.ts';
import type { Ledger, ListenerEntry } from './ledger.ts';

/** Events that may wait for one plugin. */
const MOST_WAITING = 200;
const TIMEOUT_MS = 5_000;

export interface EventBusOptions {
  /** Ledgers of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest wait for one listener; default 5 s. */
  readonly timeoutMs?: number;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
}

interface Given {
  readonly name: string;
  readonly value: unknown;
}

export class EventBus {
  readonly #options: EventBusOptions;
  readonly #stalls: StallWatch;
  readonly #queues = new WeakMap<Ledger, Queue>();

  constructor(options: EventBusOptions) {
    this.#options = options;
    this.#stalls = options.stalls ?? new StallWatch(options);
  }

  /** Takes what has been checked. Returns before anybody is told. */
  give(name: string, value: unknown): void {
    for (const ledger of this.#options.ledgers())
      if (ledger.listeners.some(({ event }) => event === name)) this.#queueOf(ledger).push({ name, value });
  }

  #queueOf(ledger: Ledger): Queue {
    const queue = this.#queues.get(ledger) ?? new Queue(ledger, this.#options, this.#stalls);
    this.#queues.set(ledger, queue);
    return queue;
  }
}

/** What one instance of a plugin has yet to hear, in the order in which it was given. */
class Queue {
  readonly #ledger: Ledger;
  readonly #options: EventBusOptions;
  readonly #stalls: StallWatch;
  readonly #queue = createSerialQueue();
  /** With the one that is being told. */
  #waiting = 0;
  /** Listeners that have not come back in time. */
  readonly #hanging = new Set<ListenerEntry>();
  #isFull = false;

  constructor(ledger: Ledger, options: EventBusOptions, stalls: StallWatch) {
    this.#ledger = ledger;
    this.#options = options;
    this.#stalls = stalls;
  }

  push(given: Given): void {
    if (this.#waiting >= MOST_WAITING) return this.#drop(given);
    this.#waiting += 1;
    void this.#queue.run(() => this.#takeOne(given));
  }

  /** Said once until it has caught up. */
  #drop({ name }: Given): void {
    const { plugin } = this.#ledger;
    if (!this.#isFull)
      this.#options.log.error(
        { plugin, event: name, waiting: MOST_WAITING },
        'plugin takes events more slowly than they come; it misses those that do not fit into its queue',
      );
    this.#isFull = true;
  }

  async #takeOne(given: Given): Promise<void> {
    // Plugins that answer each other leave room for everything else.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#tell(given);
    this.#waiting -= 1;
    if (this.#waiting === 0) this.#isFull = false;
  }

  async #tell({ name, value }: Given): Promise<void> {
    for (const listener of this.#ledger.listeners) {
      const isUp = this.#options.ledgers().includes(this.#ledger);
      if (isUp && listener.event === name && !this.#hanging.has(listener)) await this.#call(listener, value);
    }
  }

  async #call(listener: ListenerEntry, value: unknown): Promise<void> {
    const { clock, log, timeoutMs = TIMEOUT_MS } = this.#options;
    const { plugin } = this.#ledger;
    const { event, fn } = listener;
    const place = placeIn(this.#ledger, `event ${event}`);
    const call = (async () => this.#stalls.call(place, () => fn(structuredClone(value) as never)))();
    try {
      await timeBox(clock, timeoutMs, call);
    } catch (error) {
      const isLate = isA(error, TimeBoxError);
      const err = error ?? sentence(error);
      log.error({ plugin, event, err }, 'plugin failed to take an event; others have heard of it');
      if (!isLate) return;
      this.#hanging.add(listener);
      const back = (): void => void this.#hanging.delete(listener);
      // Told as late already.
      void call.then(back, back);
    }
  }
}
