/**
 * The side effects of one plugin instance: labelled, acquired one by one, released last in, first out.
 * Every acquire and every release has a time limit, so that one plugin cannot block the others.
 */
import type { Awaitable, Clock, Logger, Release } from '../../contract/platform.ts';
import { TimeBoxError, timeBox, unlessAborted } from '../../platform/deadline.ts';
import { isA } from '../../platform/log/thrown.ts';
import { reasonOf } from '../../sdk/reason-of.ts';

export type DisposeReason = 'reload' | 'disable' | 'shutdown' | 'handover' | 'failure';
export interface ScopeOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest time for one effect to start, in milliseconds; default 30 s. */
  readonly acquireMs?: number;
  /** Longest time for one effect to be released, in milliseconds; default 30 s. */
  readonly releaseMs?: number;
}

export interface Scope {
  /** Aborted at disposal, with the reason. */
  readonly signal: AbortSignal;
  /** Labels of the active effects, in the order of acquisition. */
  readonly labels: readonly string[];
  /**
   * Rejects when the effect does not start, or at once when the scope is cancelled; effects acquired before
   * stay until `dispose`.
   */
  acquire(label: string, start: (signal: AbortSignal) => Awaitable<Release>): Promise<void>;
  /** Holds what has come up already. */
  hold(label: string, release: Release): void;
  /** Ends the waiting for an effect that is coming up. */
  cancel(reason: DisposeReason): void;
  /**
   * Releases everything, one by one. Rejects with an AggregateError when releases failed; the others were
   * released anyway.
   */
  dispose(reason: DisposeReason): Promise<void>;
}

export function createScope(options: ScopeOptions): Scope {
  return new SerialScope(options);
}

interface Disposable {
  readonly label: string;
  readonly release: Release;
}

class SerialScope implements Scope {
  readonly #options: Required<ScopeOptions>;
  readonly #controller = new AbortController();
  readonly #disposables: Disposable[] = [];
  #disposal: Promise<void> | undefined;

  constructor({ clock, log, acquireMs = 30_000, releaseMs = 30_000 }: ScopeOptions) {
    this.#options = { clock, log, acquireMs, releaseMs };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get labels(): readonly string[] {
    return this.#disposables.map((effect) => effect.label);
  }

  async acquire(label: string, start: (signal: AbortSignal) => Awaitable<Release>): Promise<void> {
    const starting = (async () => start(this.signal))();
    try {
      const release = await this.#inTime(starting);
      if (typeof release !== 'function') throw new Error('it did not return its release, a function');
      this.#disposables.push({ label, release });
    } catch (error) {
      if (isA(error, TimeBoxError)) void this.#releaseLate(label, starting);
      throw new Error(`effect "${label}"`, { cause: error });
    }
  }

  hold(label: string, release: Release): void {
    this.#disposables.push({ label, release });
  }

  cancel(reason: DisposeReason): void {
    this.#controller.abort(reason);
  }

  dispose(reason: DisposeReason): Promise<void> {
    this.cancel(reason);
    this.#disposal ??= this.#releaseAll();
    return this.#disposal;
  }

  async #inTime(starting: Promise<Release>): Promise<Release> {
    const { clock, acquireMs } = this.#options;
    const { signal } = this;
    try {
      return await timeBox(clock, acquireMs, unlessAborted(signal, starting));
    } catch (error) {
      if (signal.aborted && error === signal.reason) throw new TimeBoxError('was stopped while it started');
      throw error;
    }
  }

  /** An effect that starts after the wait has ended is released at once. */
  async #releaseLate(label: string, starting: Promise<Release>): Promise<void> {
    const { log } = this.#options;
    try {
      await (
        await starting
      )();
      log.warn({ effect: label }, 'effect came up too late and was released');
    } catch (error) {
      log.warn({ effect: label, err: error }, 'effect came up too late and failed');
    }
  }

  async #releaseAll(): Promise<void> {
    const { clock, releaseMs } = this.#options;
    const errors: unknown[] = [];
    for (let effect = this.#disposables.pop(); effect; effect = this.#disposables.pop()) {
      const { label, release } = effect;
      await timeBox(clock, releaseMs, (async () => release())()).catch((error: unknown) =>
        errors.push(new Error(`release "${label}"`, { cause: error })),
      );
    }
    if (errors.length > 0)
      throw new AggregateError(
        errors,
        `${String(errors.length)} effects were not released: ${errors.map((error) => reasonOf(error)).join('; ')}`,
      );
  }
}
