/**
 * A scope holds the side effects of one plugin instance: labelled, acquired one by one, released last in first out.
 * Every acquire and every release is time-boxed, so that one plugin cannot hold up the others.
 */
import type { Awaitable } from '../api.ts';
import type { Clock, Logger, Release } from '../services.ts';
import { TimeBoxError, timeBox } from './time-box.ts';

export type DisposeReason = 'reload' | 'disable' | 'shutdown' | 'handover' | 'failure';
export interface ScopeOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest wait for one effect to come up; default 30 s. */
  readonly acquireMs?: number;
  /** Longest wait for one effect to be released; default 30 s. */
  readonly releaseMs?: number;
}

export interface Scope {
  /** Aborted at disposal, with the reason. */
  readonly signal: AbortSignal;
  /** Labels of what is held now, in the order of acquisition. */
  readonly labels: readonly string[];
  /** Rejects when the effect does not come up; what was acquired before stays held until `dispose`. */
  acquire(label: string, start: (signal: AbortSignal) => Awaitable<Release>): Promise<void>;
  /** Releases everything, serially. Rejects with an AggregateError when releases failed; the others were released all the same. */
  dispose(reason: DisposeReason): Promise<void>;
}

export function createScope(options: ScopeOptions): Scope {
  const { clock, log, acquireMs = 30_000, releaseMs = 30_000 } = options;
  const controller = new AbortController();
  const held: { label: string; release: Release }[] = [];
  let disposal: Promise<void> | undefined;

  const release = async (effect: { label: string; release: Release }): Promise<void> => {
    try {
      await timeBox(clock, releaseMs, (async () => effect.release())());
    } catch (error) {
      throw new Error(`release "${effect.label}"`, { cause: error });
    }
  };

  const releaseAll = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (let effect = held.pop(); effect; effect = held.pop()) await release(effect).catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw new AggregateError(errors, `${String(errors.length)} effects were not released`);
  };

  /** An effect that comes up after its deadline is released at once: nobody waits for it any more. */
  const releaseLate = async (label: string, starting: Promise<Release>): Promise<void> => {
    try {
      await (await starting)();
      log.warn({ effect: label }, 'effect came up too late and was released');
    } catch (error) {
      log.warn({ effect: label, err: error }, 'effect came up too late and failed');
    }
  };

  return {
    signal: controller.signal,
    get labels() {
      return held.map((effect) => effect.label);
    },
    async acquire(label, start) {
      const starting = (async () => start(controller.signal))();
      try {
        const undo = await timeBox(clock, acquireMs, starting);
        if (typeof undo !== 'function') throw new Error('it did not return its release, a function');
        held.push({ label, release: undo });
      } catch (error) {
        if (error instanceof TimeBoxError) void releaseLate(label, starting);
        throw new Error(`effect "${label}"`, { cause: error });
      }
    },
    dispose(reason) {
      if (!disposal) {
        controller.abort(reason);
        disposal = releaseAll();
      }
      return disposal;
    },
  };
}
