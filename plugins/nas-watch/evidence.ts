import type { Health, LiveShare, RemoteEvidence } from 'mountkeeper';

/** `unclear`: something failed, and it may as well be for a reason of this machine. */
export type Verdict = RemoteEvidence | 'unclear' | 'unknown';

/** What one check of a remote has shown, and when (monotonic milliseconds). */
export interface Evidence {
  readonly verdict: Verdict;
  readonly atMs: number;
}

/** An older answer proves nothing about now. */
const ANSWER_FRESH_MS = 5_000;
/** Failed shares are probed at least this often. */
const SILENCE_FRESH_MS = 90_000;

/**
 * What a change of health shows about the remote; undefined when nothing. A remote that refuses has
 * answered. `remoteAnswers` is false of a share that has come up although its remote is away.
 */
export function verdictOfChange(
  change: {
    readonly from: Health;
    readonly to: Health;
    readonly remote?: RemoteEvidence | undefined;
  },
  remoteAnswers?: boolean,
): RemoteEvidence | undefined {
  if (change.from === 'probing' && change.to === 'healthy')
    return remoteAnswers === false ? undefined : 'answers';
  return change.to === 'failed' ? change.remote : undefined;
}

/** A mounted share's own check is current; of the probes, only an answer counts in addition. */
export function evidenceOf(
  share: LiveShare,
  lastProbe: Evidence | undefined,
  nowMs: number,
): readonly Evidence[] {
  const probes = lastProbe ? [lastProbe] : [];
  if (share.mount === undefined || share.remoteAnswers === undefined) return probes;
  const verdict = share.remoteAnswers ? 'answers' : (share.remoteEvidence ?? 'unclear');
  return [{ verdict, atMs: nowMs }, ...probes.filter(({ verdict }) => verdict === 'answers')];
}

/** The combined evidence about one connection. One share whose remote answers is enough. */
export function weigh(evidence: readonly Evidence[], nowMs: number): Verdict {
  const isFresh = ({ atMs }: Evidence, ms: number): boolean => nowMs - atMs < ms;
  if (evidence.some((one) => one.verdict === 'answers' && isFresh(one, ANSWER_FRESH_MS))) return 'answers';
  const isSeen = (verdict: Verdict): boolean =>
    evidence.some((one) => one.verdict === verdict && isFresh(one, SILENCE_FRESH_MS));
  if (isSeen('silent')) return 'silent';
  return isSeen('unclear') ? 'unclear' : 'unknown';
}
