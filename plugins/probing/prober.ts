import { formatDuration } from 'mountkeeper';
import type { Clock, Mounter, Prober, ProbeResult, RemoteFailure, ShareSpec } from 'mountkeeper';
import type { Places } from './slots.ts';

type Failure = Omit<Extract<ProbeResult, { ok: false }>, 'ok'>;

export interface ProberOptions {
  readonly clock: Clock;
  readonly mounter: () => Mounter;
  readonly places: Places;
  readonly timeoutMs: () => number;
}

export function createProber(options: ProberOptions): Prober {
  return {
    probe: async (spec, signal) => {
      const timeoutMs = options.timeoutMs();
      const deadline = options.clock.deadline(timeoutMs, signal);
      try {
        return await Promise.race([probed(spec, deadline, options), refusedAt(deadline)]);
      } catch (error) {
        return {
          ok: false,
          ...failureOf(error as Error, {
            isInterrupted: signal.aborted,
            isLate: deadline.aborted,
            timeoutMs,
          }),
        };
      }
    },
  };
}

async function probed(
  spec: ShareSpec,
  signal: AbortSignal,
  { places, mounter }: ProberOptions,
): Promise<ProbeResult> {
  const leave = await places.enter(signal);
  try {
    await mounter().probe(spec, signal);
    return { ok: true };
  } finally {
    leave();
  }
}

/** The mounter is told to stop by the same signal, but nobody waits for it to obey. */
function refusedAt(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

function failureOf(
  error: RemoteFailure,
  at: { readonly isInterrupted: boolean; readonly isLate: boolean; readonly timeoutMs: number },
): Failure {
  if (at.isInterrupted) return { reason: 'the probe was interrupted' };
  const seconds = at.timeoutMs < 1_000 ? `${at.timeoutMs}ms` : formatDuration(at.timeoutMs);
  if (at.isLate)
    return {
      reason: `the remote did not answer within ${seconds}; is it switched on, and is the way to it free?`,
      remote: 'silent',
    };
  return error.remote === undefined
    ? { reason: error.message }
    : { reason: error.message, remote: error.remote };
}
