/**
 * Deadlines for calls that are made over and over, one at a time: a signal and its listeners cost more than most of the calls,
 * so one signal serves many, and a timer whose call has ended is taken back rather than left to fire.
 */
import { setMaxListeners } from 'node:events';
import type { Clock } from './api.ts';
import { timeoutError } from './system/timeout-error.ts';

/** Then a fresh one: a callee that never takes its listeners back must not pile them up. */
const CALLS_PER_SIGNAL = 64;

export interface CallDeadlineOptions {
  readonly clock: Clock;
  /** Ends the call in progress, and every later one at once. */
  readonly end: AbortSignal;
  readonly timeoutMs: number;
  /** How much longer than its deadline a call may take before it is given up. */
  readonly graceMs: number;
}

export class CallDeadline {
  readonly #options: CallDeadlineOptions;
  #controller = createController();
  #calls = 0;
  /** Gives up the call in progress after its grace. */
  #abandon: ((reason: Error) => void) | undefined;

  constructor(options: CallDeadlineOptions) {
    this.#options = options;
    const { end } = options;
    if (end.aborted) this.#controller.abort(end.reason);
    else end.addEventListener('abort', () => this.#abort(end.reason as Error), { once: true });
  }

  /** Settles as the call does; rejects with the signal's reason when it goes on beyond deadline and grace. Never two at once. */
  run<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, graceMs, timeoutMs } = this.#options;
    const { signal } = this.#renewed();
    return new Promise((resolve, reject) => {
      let cancel = clock.after(timeoutMs, () => this.#abort(timeoutError(`no answer within ${timeoutMs} ms`)));
      const abandon = (reason: Error): void => {
        cancel();
        cancel = clock.after(graceMs, () => reject(reason), { keepAlive: true });
      };
      const settle = (): void => {
        cancel();
        if (this.#abandon === abandon) this.#abandon = undefined;
      };
      this.#abandon = abandon;
      if (signal.aborted) abandon(signal.reason as Error);
      void (async () => call(signal))().finally(settle).then(resolve, reject);
    });
  }

  #renewed(): AbortController {
    const isUsedUp = this.#calls >= CALLS_PER_SIGNAL || this.#controller.signal.aborted;
    if (isUsedUp && !this.#options.end.aborted) {
      this.#controller = createController();
      this.#calls = 0;
    }
    this.#calls += 1;
    return this.#controller;
  }

  #abort(reason: Error): void {
    this.#abandon?.(reason);
    this.#controller.abort(reason);
  }
}

/** Callees may leave a listener behind with each call; that many is no leak, since the signal is let go with them. */
function createController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
