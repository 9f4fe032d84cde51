/**
 * The share state machine: Pending → Probing → Healthy | Failed(reason). A reset (reconnect, new settings)
 * enters Pending from every state. Healthy means that the remote path can be listed: a share that is mounted and
 * cannot be listed, since its remote is away and so is what was cached, is in Probing until it can. `nextState` is
 * pure; `ShareHealth` keeps one share's state and notifies plugins.
 */
import type { RemoteEvidence } from '../contract/mount.ts';
import type { Health } from '../contract/status.ts';
import type { HookRunner } from '../plugins/hooks.ts';
import { timeBox } from '../platform/deadline.ts';
import type { RunnerEnvironment } from './environment.ts';

export type ShareState =
  | { readonly health: 'pending' | 'probing' | 'healthy' }
  | { readonly health: 'failed'; readonly reason: string };

export type ShareEvent =
  | { readonly kind: 'reset' | 'probe' }
  /** It is mounted: and can be listed, or cannot. */
  | { readonly kind: 'mounted' | 'unreadable' }
  | {
      readonly kind: 'fail';
      readonly reason: string;
      readonly remote?: RemoteEvidence | undefined;
    };

export const PENDING: ShareState = { health: 'pending' };

const ALLOWED: Readonly<Record<Exclude<ShareEvent['kind'], 'reset'>, readonly Health[]>> = {
  probe: ['pending', 'failed'],
  mounted: ['pending', 'probing'],
  unreadable: ['pending', 'probing', 'healthy'],
  fail: ['pending', 'probing', 'healthy', 'failed'],
};

/** The state after an event. Throws on an undefined transition, which is a defect of the caller. */
export function nextState(state: ShareState, event: ShareEvent): ShareState {
  if (event.kind === 'reset') return PENDING;
  if (!ALLOWED[event.kind].includes(state.health))
    throw new Error(`share state: '${event.kind}' cannot follow '${state.health}'`);
  if (event.kind === 'fail') return { health: 'failed', reason: event.reason };
  return { health: event.kind === 'mounted' ? 'healthy' : 'probing' };
}

/**
 * Wait before the n-th further probe of a failed share (n from 1), in milliseconds: 5 s doubling to 60 s, ±
 * 20 %.
 */
export function probeBackoffMs(attempt: number, random: () => number = Math.random): number {
  return Math.min(60_000, 5_000 * 2 ** (attempt - 1)) * (0.8 + 0.4 * random());
}

/** After this many early ends in a row, a mount that does not stay up is tried less often. */
const HOPELESS_DEATHS = 60;

/**
 * Wait before mounting again after the n-th early end in a row, in milliseconds: none for the first, then
 * 250 ms doubling to 1 s, so that the share is soon readable again however often a process is killed; 5 s
 * for a mount that does not stay up for minutes.
 */
export function remountBackoffMs(earlyDeaths: number): number {
  if (earlyDeaths <= 1) return 0;
  return earlyDeaths > HOPELESS_DEATHS ? 5_000 : Math.min(1_000, 250 * 2 ** (earlyDeaths - 2));
}

const FAREWELL_DEADLINE_MS = 5_000;

/** Applies state changes by the rules above, and notifies plugins in the same order. */
export class ShareHealth {
  readonly #share: string;
  readonly #around: RunnerEnvironment;
  #state: ShareState = PENDING;
  #told: Promise<void> = Promise.resolve();

  constructor(share: string, around: RunnerEnvironment) {
    this.#share = share;
    this.#around = around;
  }

  get state(): ShareState {
    return this.#state;
  }

  enter(event: ShareEvent): void {
    const from = this.#state.health;
    this.#state = nextState(this.#state, event);
    const to = this.#state.health;
    const reason = this.#state.health === 'failed' ? this.#state.reason : null;
    if (reason !== null) this.#around.log.warn({ share: this.#share, reason }, 'share failed');
    this.#around.onChange();
    const remote = event.kind === 'fail' ? event.remote : undefined;
    const isMounted = event.kind === 'mounted' || event.kind === 'unreadable';
    if (from !== to)
      this.tell((hooks) =>
        hooks.observe('shareHealthChanged', {
          share: this.#share,
          from,
          to,
          reason,
          ...(remote && { remote }),
          ...(isMounted && { mounted: true as const }),
        }),
      );
  }

  /**
   * It is mounted. The one place that says whether that is healthy: status, hooks and `LiveShare` follow it. May be
   * called as often as you like.
   */
  up({ isUnreadable }: { readonly isUnreadable: boolean }): void {
    const health: Health = isUnreadable ? 'probing' : 'healthy';
    if (health !== this.#state.health) this.enter({ kind: isUnreadable ? 'unreadable' : 'mounted' });
  }

  /** Blocks nothing: a slow plugin delays only later notifications, never the share. */
  tell(call: (hooks: HookRunner) => Promise<void>): void {
    this.#told = this.#told
      .then(() => call(this.#around.hooks()))
      .catch((error: unknown) => {
        this.#around.log.error({ share: this.#share, err: error }, 'plugins not told');
      });
  }

  /** Waits until plugins have got all notifications, for a limited time. */
  async farewell(): Promise<void> {
    // Late or failing plugins have been logged; the share does not wait for them.
    await timeBox(this.#around.clock, FAREWELL_DEADLINE_MS, this.#told).catch(() => undefined);
  }
}
