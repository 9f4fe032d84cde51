import { formatDuration, unlessAborted } from 'mountkeeper';
import type {
  Clock,
  ConnectionMonitors,
  Mounter,
  Prober,
  ProbeResult,
  RemoteFailure,
  Semaphore,
  ShareSpec,
} from 'mountkeeper';

/** A NAS that takes longer to answer a dial is probed: the mount would wait for it for longer than a probe may. */
const DIAL_MS = 400;

type Failure = Omit<Extract<ProbeResult, { ok: false }>, 'ok'>;

export interface ProberOptions {
  readonly clock: Clock;
  readonly mounter: () => Mounter;
  readonly connections: () => Pick<ConnectionMonitors, 'of'>;
  /** Slots for starting probes: starting a process costs processor time, waiting for a remote does not. */
  readonly places: Semaphore;
  readonly timeoutMs: () => number;
}

export function createProber(options: ProberOptions): Prober {
  return {
    leavesToMount: async (spec, signal) => {
      try {
        const monitor = options.connections().of(spec.connection);
        if (!monitor || (await options.mounter().mountsUnprobed?.(spec)) !== true) return false;
        return (await monitor.dial(options.clock.deadline(DIAL_MS, signal))) === undefined;
      } catch {
        // The probe says why.
        return false;
      }
    },
    probe: async (spec, signal) => {
      const timeoutMs = options.timeoutMs();
      const deadline = options.clock.deadline(timeoutMs, signal);
      try {
        // The mounter gets the same signal, but this does not wait for it to obey.
        return await unlessAborted(deadline, probed(spec, deadline, options));
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
