/**
 * The share state machine: Pending → Probing → Healthy | Failed(reason). Pure; the runner drives it.
 * A reset (reconnect, new settings) enters Pending from everywhere.
 */
import type { Health } from '../contract/status.ts';
import type { RemoteEvidence } from '../contract/mount.ts';

export type ShareState =
  | { readonly health: 'pending' | 'probing' | 'healthy' }
  | { readonly health: 'failed'; readonly reason: string };

export type ShareEvent =
  | { readonly kind: 'reset' | 'probe' | 'mounted' }
  | { readonly kind: 'fail'; readonly reason: string; readonly remote?: RemoteEvidence | undefined };

export const PENDING: ShareState = { health: 'pending' };

const ALLOWED: Readonly<Record<Exclude<ShareEvent['kind'], 'reset'>, readonly Health[]>> = {
  probe: ['pending', 'failed'],
  mounted: ['pending', 'probing'],
  fail: ['pending', 'probing', 'healthy', 'failed'],
};

/**
 * The state after an event. Throws on a transition that the machine does not have: that is a defect of the
 * caller.
 */
export function nextState(state: ShareState, event: ShareEvent): ShareState {
  if (event.kind === 'reset') return PENDING;
  if (!ALLOWED[event.kind].includes(state.health))
    throw new Error(`share state: '${event.kind}' cannot follow '${state.health}'`);
  if (event.kind === 'fail') return { health: 'failed', reason: event.reason };
  return { health: event.kind === 'probe' ? 'probing' : 'healthy' };
}

/**
 * Wait before the n-th further probe of a failed share (n from 1), in milliseconds: 5 s doubling to 60 s, ±
 * 20 %.
 */
export function probeBackoffMs(attempt: number, random: () => number = Math.random): number {
  return Math.min(60_000, 5_000 * 2 ** (attempt - 1)) * (0.8 + 0.4 * random());
}

/** Early deaths in a row after which a mount that does not stay up is tried less often. */
const HOPELESS_DEATHS = 60;

/**
 * Wait before mounting again after the n-th early death in a row, in milliseconds: none for the first, then
 * 250 ms doubling to 1 s, so that reads are back soon however often a process is killed; 5 s for one that
 * would not stay up for minutes.
 */
export function remountBackoffMs(earlyDeaths: number): number {
  if (earlyDeaths <= 1) return 0;
  return earlyDeaths > HOPELESS_DEATHS ? 5_000 : Math.min(1_000, 250 * 2 ** (earlyDeaths - 2));
}
