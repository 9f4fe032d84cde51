/**
 * The only source of time. Everything that waits or measures takes a clock, so that tests can bring their
 * own.
 */
import { setMaxListeners } from 'node:events';
import type { Clock } from '../contract/platform.ts';
import { timeoutError } from './timeout-error.ts';

/** Longer delays make Node fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

export function createClock(): Clock {
  return { now: () => Date.now(), monotonic: () => performance.now(), sleep, after, deadline };
}

function after(ms: number, fn: () => void, options: { readonly keepAlive?: boolean } = {}): () => void {
  let timer: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const partMs = Math.min(leftMs, LONGEST_TIMER_MS);
    timer = setTimeout(() => (leftMs > partMs ? arm(leftMs - partMs) : fn()), partMs);
    if (options.keepAlive !== true) timer.unref();
  };
  arm(Number.isNaN(ms) ? 0 : Math.max(0, ms));
  return () => clearTimeout(timer);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = after(
      ms,
      () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      },
      { keepAlive: true },
    );
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function deadline(ms: number, parent?: AbortSignal): AbortSignal {
  const controller = new AbortController();
  if (parent?.aborted === true) {
    controller.abort(parent.reason);
    return controller.signal;
  }
  const onAbort = (): void => {
    cancel();
    controller.abort(parent?.reason);
  };
  const cancel = after(ms, () => {
    parent?.removeEventListener('abort', onAbort);
    controller.abort(timeoutError(`no answer within ${ms} ms`));
  });
  if (parent) {
    // Many deadlines under one long-lived signal are not a leak: each removes its listener when it fires.
    setMaxListeners(0, parent);
    parent.addEventListener('abort', onAbort, { once: true });
  }
  return controller.signal;
}
