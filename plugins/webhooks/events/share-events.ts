import { formatDuration } from 'mountkeeper';
import type { Hooks, NotificationEvent } from 'mountkeeper';
import type { Crossed, Crossing } from './thresholds.ts';

/** A share that recovers within this time is not reported. */
const LASTING_MS = 10_000;

type Change = Hooks['shareHealthChanged']['args'][0];

interface Failure {
  readonly reason: string;
  readonly since: number;
}

/** Failures that have not lasted long enough yet, by share. */
export class ShareNews {
  readonly #fresh = new Map<string, Failure>();

  /** A failed share is probed and fails again: that is one failure, with the latest reason. */
  changed(change: Change, crossed: Crossed, now: number): Crossing {
    if (change.to === 'failed') {
      this.#fresh.set(change.share, {
        reason: change.reason ?? 'unknown',
        since: this.#fresh.get(change.share)?.since ?? now,
      });
      return { crossed, events: [] };
    }
    if (change.to !== 'healthy') return { crossed, events: [] };
    this.#fresh.delete(change.share);
    const { [change.share]: since, ...failedShares } = crossed.failedShares;
    return since === undefined
      ? { crossed, events: [] }
      : { crossed: { ...crossed, failedShares }, events: [healed(change.share, since, now)] };
  }

  /** It came up again: the failure is over. Only what is healthy `works again`: it may be up without its NAS. */
  mounted(share: string): void {
    this.#fresh.delete(share);
  }

  /** Failures that have lasted long enough by now. `shares`: the configured ones; others are forgotten. */
  look(crossed: Crossed, shares: ReadonlySet<string>, now: number): Crossing {
    for (const share of [...this.#fresh.keys()].filter((name) => !shares.has(name)))
      this.#fresh.delete(share);
    const known = Object.fromEntries(
      Object.entries(crossed.failedShares).filter(([share]) => shares.has(share)),
    );
    // Also handles a clock that was set back.
    const lasting = [...this.#fresh].filter(
      ([share, { since }]) => Math.abs(now - since) >= LASTING_MS && known[share] === undefined,
    );
    if (lasting.length === 0 && Object.keys(known).length === Object.keys(crossed.failedShares).length)
      return { crossed, events: [] };
    return {
      crossed: {
        ...crossed,
        failedShares: {
          ...known,
          ...Object.fromEntries(lasting.map(([share, { since }]) => [share, since])),
        },
      },
      events: lasting.map(([share, failure]) => failed(share, failure)),
    };
  }
}

function failed(share: string, { reason, since }: Failure): NotificationEvent {
  return {
    type: 'share.failed',
    severity: 'error',
    key: `share.failed/${share}/${since}`,
    message: `The share ${share} has failed: ${reason}`,
    data: { share, reason, since: new Date(since).toISOString() },
  };
}

function healed(share: string, since: number, now: number): NotificationEvent {
  const duration = Math.max(0, now - since);
  return {
    type: 'share.healed',
    severity: 'info',
    key: `share.healed/${share}/${since}`,
    message: `The share ${share} works again after ${formatDuration(duration)}.`,
    data: { share, since: new Date(since).toISOString(), duration_seconds: Math.round(duration / 1000) },
  };
}
