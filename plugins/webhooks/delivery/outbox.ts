import { randomUUID } from 'node:crypto';
import type { Clock, Logger, NotificationEvent } from 'mountkeeper';
import type { Attempt, Delivery } from './delivery.ts';
import { waitAfter } from './retry-times.ts';

/** Deliveries that are kept; the oldest finished ones are dropped first. */
const KEPT = 200;
const ATTEMPTS_KEPT = 12;
const ATTEMPT_TIMEOUT_MS = 10_000;
/** When the clock falls back by less, it was only corrected. */
const SET_BACK_MS = 1_000;

/** The result of one attempt. */
export type Outcome =
  | { readonly ok: true; readonly status: number }
  | {
      readonly ok: false;
      readonly status: number | null;
      readonly problem: string;
      readonly askedWaitMs?: number | undefined;
    };

export interface OutboxOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** False while no receiver is configured. */
  readonly isOn: () => boolean;
  /** Never rejects. */
  readonly attempt: (delivery: Delivery, signal: AbortSignal) => Promise<Outcome>;
  readonly onChange: () => void;
  /** Resolves when every change so far is on disk. */
  readonly saved: () => Promise<void>;
  readonly signal: AbortSignal;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Sends events one after the other, with repeats. Nobody waits for it. */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #watchers = new Map<string, (delivery: Delivery) => void>();
  #deliveries: Delivery[];
  #isSending = false;
  /** Both clocks at the last check. */
  #at: { readonly now: number; readonly monotonic: number };

  constructor(options: OutboxOptions, former: readonly Delivery[]) {
    this.#options = options;
    const { clock } = options;
    this.#at = { now: clock.now(), monotonic: clock.monotonic() };
    this.#deliveries = former.map((one) => broughtBack(one, this.#at.now));
  }

  /** Oldest first. */
  get deliveries(): readonly Delivery[] {
    return this.#deliveries;
  }

  /** Undefined when no receiver is configured, or an event with this key was already accepted. */
  add(event: NotificationEvent): Delivery | undefined {
    const { clock, isOn, onChange } = this.#options;
    if (!isOn() || this.#deliveries.some((one) => one.event.key === event.key)) return undefined;
    const now = clock.now();
    const delivery: Delivery = {
      id: `msg_${randomUUID().replaceAll('-', '')}`,
      event,
      createdAt: now,
      state: 'waiting',
      tries: 0,
      nextAt: now,
      isAskedToWait: false,
      attempts: [],
    };
    this.#deliveries.push(delivery);
    this.#forgetOldest();
    onChange();
    void this.work();
    return delivery;
  }

  /** Sends a delivery again, whatever its state. False for an unknown one. */
  resend(id: string): boolean {
    const delivery = this.#deliveries.find((one) => one.id === id);
    if (!delivery) return false;
    this.#put({
      ...delivery,
      state: 'waiting',
      tries: 0,
      nextAt: this.#options.clock.now(),
      isAskedToWait: false,
    });
    void this.work();
    return true;
  }

  /** The delivery after its next attempt. Rejects with the signal's reason. */
  afterNextAttempt(id: string, signal: AbortSignal): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      signal.addEventListener(
        'abort',
        () => {
          this.#watchers.delete(id);
          reject(signal.reason as Error);
        },
        { once: true },
      );
      this.#watchers.set(id, resolve);
    });
  }

  /** Sends what is due. Resolves when nothing is due any more. */
  async work(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    this.#followClock();
    try {
      for (let due = this.#due(); due; due = this.#due()) await this.#send(due);
    } finally {
      this.#isSending = false;
    }
  }

  /**
   * After the clock was set back, waiting deliveries must not wait for the old time. After it was set
   * forward, they are sent at once.
   */
  #followClock(): void {
    const [now, monotonic] = [this.#options.clock.now(), this.#options.clock.monotonic()];
    const backMs = monotonic - this.#at.monotonic - (now - this.#at.now);
    this.#at = { now, monotonic };
    if (backMs < SET_BACK_MS) return;
    this.#deliveries = this.#deliveries.map((one) =>
      one.state === 'waiting' ? { ...one, nextAt: one.nextAt - backMs } : one,
    );
    this.#options.onChange();
  }

  #due(): Delivery | undefined {
    const { clock, isOn, signal } = this.#options;
    if (signal.aborted || !isOn()) return undefined;
    const now = clock.now();
    return this.#deliveries.find((one) => one.state === 'waiting' && one.nextAt <= now);
  }

  async #send(delivery: Delivery): Promise<void> {
    const { clock, signal, attempt, saved } = this.#options;
    // Saved first, then sent: after a crash it is sent again under the same id, never under another.
    await saved();
    if (signal.aborted) return;
    const end = new AbortController();
    const at = clock.now();
    const begun = clock.monotonic();
    const outcome = await attempt(
      delivery,
      clock.deadline(ATTEMPT_TIMEOUT_MS, AbortSignal.any([signal, end.signal])),
    );
    end.abort();
    if (signal.aborted && !outcome.ok) return;
    const done: Attempt = {
      at,
      ms: Math.round(clock.monotonic() - begun),
      status: outcome.status,
      problem: outcome.ok ? null : outcome.problem,
    };
    const tried = {
      ...delivery,
      tries: delivery.tries + 1,
      attempts: [...delivery.attempts, done].slice(-ATTEMPTS_KEPT),
    };
    const next = outcome.ok ? this.#delivered(tried) : this.#notDelivered(tried, outcome);
    this.#put(next);
    if (this.#watchers.has(next.id)) await saved();
    this.#watchers.get(next.id)?.(next);
    this.#watchers.delete(next.id);
  }

  #delivered(delivery: Delivery): Delivery {
    this.#options.log.info(
      { id: delivery.id, event: delivery.event.type, tries: delivery.tries },
      'notification delivered',
    );
    const now = this.#options.clock.now();
    // The receiver answers again, so deliveries that waited only for it are sent now.
    this.#deliveries = this.#deliveries.map((one) =>
      one.state === 'waiting' && !one.isAskedToWait ? { ...one, nextAt: Math.min(one.nextAt, now) } : one,
    );
    return { ...delivery, state: 'delivered' };
  }

  #notDelivered(delivery: Delivery, outcome: Outcome & { ok: false }): Delivery {
    const { clock, log, random } = this.#options;
    const wait = waitAfter(delivery.tries, outcome.askedWaitMs, random());
    const about = {
      id: delivery.id,
      event: delivery.event.type,
      tries: delivery.tries,
      status: outcome.status,
      reason: outcome.problem,
    };
    if (wait === undefined) {
      log.error(about, 'notification given up; "mountkeeper webhook resend" sends it again');
      return { ...delivery, state: 'failed' };
    }
    log.warn(
      { ...about, nextInSeconds: Math.round(wait / 1000) },
      'notification not delivered, trying again',
    );
    return { ...delivery, nextAt: clock.now() + wait, isAskedToWait: outcome.askedWaitMs !== undefined };
  }

  #put(delivery: Delivery): void {
    this.#deliveries = this.#deliveries.map((one) => (one.id === delivery.id ? delivery : one));
    this.#options.onChange();
  }

  #forgetOldest(): void {
    while (this.#deliveries.length > KEPT) {
      const done = this.#deliveries.findIndex(({ state }) => state !== 'waiting');
      const [gone] = this.#deliveries.splice(done === -1 ? this.#oldestOfTheMost() : done, 1);
      if (gone?.state === 'waiting')
        this.#options.log.error(
          { id: gone.id, event: gone.event.type },
          'notification dropped, too many wait',
        );
    }
  }

  /** All wait. */
  #oldestOfTheMost(): number {
    const counts = new Map<string, number>();
    for (const one of this.#deliveries) counts.set(subjectOf(one), (counts.get(subjectOf(one)) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return this.#deliveries.findIndex((one) => counts.get(subjectOf(one)) === most);
  }
}

/** The first word of its type: who tells too much, such as a plugin, takes the place of nobody else's. */
function subjectOf({ event }: Delivery): string {
  return event.type.split('.', 1)[0] ?? '';
}

/** A delivery of a former daemon whose clock was ahead of the current one. */
function broughtBack(delivery: Delivery, now: number): Delivery {
  const aheadMs = (delivery.attempts.at(-1)?.at ?? delivery.createdAt) - now;
  return delivery.state === 'waiting' && aheadMs > 0
    ? { ...delivery, nextAt: delivery.nextAt - aheadMs }
    : delivery;
}
