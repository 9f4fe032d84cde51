import type { Clock, LiveShare, Logger } from 'mountkeeper';
import type { ShareRefresher } from './share-refresher.ts';

/** Shares that are refreshed automatically at the same time. */
const AT_ONCE = 2;
/** Random variation of each interval, so that shares drift apart. */
const JITTER = 0.1;

export interface RoundsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly refresher: ShareRefresher;
  readonly intervalMs: (shareName: string) => number;
  /** In [0, 1). */
  readonly random: () => number;
}

interface Plan {
  readonly intervalMs: number;
  readonly dueAt: number;
}

export interface Rounds {
  /** Starts refreshes that are due. Waits for nothing. */
  look(): void;
}

/**
 * Decides which shares are due. A share that cannot be refreshed now stays due, and is refreshed as soon as
 * possible.
 */
export function createRounds({ clock, log, shares, refresher, intervalMs, random }: RoundsOptions): Rounds {
  const plans = new Map<string, Plan>();
  const lastEnd = new Map<string, number>();

  /**
   * The first wait is a random part of the interval: after a start, the shares must not all be refreshed at
   * once.
   */
  const planFor = (name: string, interval: number): Plan => {
    const former = lastEnd.get(name);
    const now = clock.monotonic();
    if (former === undefined) return { intervalMs: interval, dueAt: now + interval * random() };
    return {
      intervalMs: interval,
      dueAt: Math.max(now, former + interval * (1 - JITTER + 2 * JITTER * random())),
    };
  };

  const start = async (name: string): Promise<void> => {
    try {
      await refresher.refresh(name, '');
    } catch (error) {
      log.warn({ share: name, reason: (error as Error).message }, 'share not refreshed');
    } finally {
      lastEnd.set(name, clock.monotonic());
      plans.delete(name);
    }
  };

  const isDue = (share: LiveShare): boolean => {
    const { name } = share.spec.share;
    const interval = intervalMs(name);
    if (!(interval > 0)) {
      plans.delete(name);
      return false;
    }
    const plan = plans.get(name);
    const next = plan?.intervalMs === interval ? plan : planFor(name, interval);
    plans.set(name, next);
    return (
      next.dueAt <= clock.monotonic() &&
      share.mount !== undefined &&
      share.remoteAnswers !== false &&
      !refresher.running.has(name)
    );
  };

  return {
    look: () => {
      const live = shares();
      forgetOthers(live, [plans, lastEnd, refresher.records]);
      const due = live
        .filter(isDue)
        .map(({ spec }) => spec.share.name)
        .sort((a, b) => (plans.get(a)?.dueAt ?? 0) - (plans.get(b)?.dueAt ?? 0));
      for (const name of due.slice(0, Math.max(0, AT_ONCE - refresher.running.size))) void start(name);
    },
  };
}

/** Forgets shares that have left the configuration. */
function forgetOthers(live: readonly LiveShare[], known: readonly Map<string, unknown>[]): void {
  const names = new Set(live.map(({ spec }) => spec.share.name));
  for (const map of known)
    [...map.keys()].filter((name) => !names.has(name)).forEach((name) => map.delete(name));
}
