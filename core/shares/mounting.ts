/** Mounts one share: probes its remote path, asks the plugins, then mounts it. */
import type {
  Mount,
  Mounter,
  ProbeResult,
  RemoteEvidence,
  RemoteFailure,
  ShareSpec,
} from '../contract/mount.ts';
import { withGrace } from '../platform/deadline.ts';
import type { RunnerEnvironment } from './environment.ts';
import { messageOf } from '../platform/log/thrown.ts';

/** Used while no prober is active. */
const PROBE_DEADLINE_MS = 10_000;
/** How long a probe may take to react to its signal. */
const PROBE_GRACE_MS = 5_000;
/** The same for a mount: it owns a process and a cache, and two at once on one cache would damage it. */
const MOUNT_GRACE_MS = 60_000;

export type MountResult =
  /** `probeFailure`: it came up although its remote did not answer. */
  | { readonly mount: Mount; readonly probeFailure?: RemoteFailure }
  | { readonly reason: string; readonly remote?: RemoteEvidence | undefined };

export interface MountShareOptions {
  readonly around: RunnerEnvironment;
  readonly spec: ShareSpec;
  readonly signal: AbortSignal;
  /** Somebody asked for a fresh probe: what it says counts, also for a share that could come up without its remote. */
  readonly isAsked?: boolean;
  /** The last try has failed: the probe says why. */
  readonly isAgain?: boolean;
  /** Called with a mount that came up after the caller stopped waiting. */
  readonly onLate: (mount: Mount) => void;
}

/** Never rejects: a failure is returned as its reason, a plain sentence. */
export async function mountShare(options: MountShareOptions): Promise<MountResult> {
  const { around, spec, signal, isAsked } = options;
  const { clock } = around;
  const mounter = around.mounter();
  if (!mounter) return { reason: 'no mounter is active; see `mountkeeper plugin list`' };
  try {
    const unprobed = await mountUnprobed(options, mounter);
    if (unprobed) return unprobed;
    const probed = await withGrace(probe(options), { clock, signal, graceMs: PROBE_GRACE_MS });
    if (!probed.ok && (isAsked || !(await comesUpWithout(probed, spec, mounter))))
      return { reason: probed.reason, remote: probed.remote };
    const mounted = await mountUnlessVetoed(options, () => mounter.mount(spec, signal));
    return probed.ok || 'reason' in mounted ? mounted : { ...mounted, probeFailure: failureOf(probed) };
  } catch (error) {
    return error instanceof Error
      ? { reason: messageOf(error), remote: (error as RemoteFailure).remote }
      : { reason: messageOf(error) };
  }
}

async function mountUnlessVetoed(
  { around, spec, signal, onLate }: MountShareOptions,
  mount: () => Promise<Mount>,
): Promise<{ readonly mount: Mount } | { readonly reason: string }> {
  signal.throwIfAborted();
  const veto = await around.hooks().veto('beforeMount', spec.share.name);
  if (veto !== undefined) return { reason: veto };
  signal.throwIfAborted();
  const grace = { clock: around.clock, signal, graceMs: MOUNT_GRACE_MS, onLate };
  return { mount: await withGrace(mount(), grace) };
}

/** Undefined where the share has to be probed first; also where this has failed, since the probe knows better why. */
async function mountUnprobed(options: MountShareOptions, mounter: Mounter): Promise<MountResult | undefined> {
  const { around, spec, signal, isAsked, isAgain } = options;
  const asked = isAsked || isAgain ? undefined : around.prober()?.leavesToMount?.(spec, signal);
  const grace = { clock: around.clock, signal, graceMs: PROBE_GRACE_MS };
  if (!asked || !(await withGrace(asked, grace))) return undefined;
  try {
    return await mountUnlessVetoed(options, () => mounter.mount(spec, signal, { isUnprobed: true }));
  } catch (error) {
    signal.throwIfAborted();
    const { name } = spec.share;
    around.log.info(
      { share: name, reason: messageOf(error) },
      'share not mounted without a probe, it is probed',
    );
    return undefined;
  }
}

/** Whether the share is of use while its remote does not answer: what was written here, and what is cached. */
async function comesUpWithout(probed: ProbeResult, spec: ShareSpec, mounter: Mounter): Promise<boolean> {
  return !probed.ok && probed.remote === 'silent' && (await mounter.mountsWithoutRemote?.(spec)) === true;
}

function failureOf({ reason, remote }: Exclude<ProbeResult, { ok: true }>): RemoteFailure {
  return Object.assign(new Error(reason), { remote });
}

async function probe({ around, spec, signal }: MountShareOptions): Promise<ProbeResult> {
  const prober = around.prober();
  if (prober) return prober.probe(spec, signal);
  await around.mounter()?.probe(spec, around.clock.deadline(PROBE_DEADLINE_MS, signal));
  return { ok: true };
}
