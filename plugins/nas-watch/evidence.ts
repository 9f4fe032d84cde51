import type { Health, LiveShare } from 'mountkeeper';

export type Verdict = 'answers' | 'silent' | 'unknown';

/** What one look at a remote has shown, and when (monotonic). */
export interface Evidence {
  readonly verdict: Verdict;
  readonly atMs: number;
}

/** Whoever says no has answered. */
const ANSWERED = /refused the user name|path is not there|does not let this user|certificate is not accepted|host key of the remote/i;
const SILENT = /refuses connections|no way to the remote|(?:does|did) not answer|host name of the remote cannot be found|connection to the remote breaks off/i;
/** An answer of longer ago proves nothing about now. */
const ANSWER_FRESH_MS = 10_000;
/** Failed shares are probed at least this often. */
const SILENCE_FRESH_MS = 90_000;

/** Of the sentence with which a share failed. Reasons of this machine's own say nothing about the NAS. */
export function verdictOfReason(reason: string): Verdict {
  if (ANSWERED.test(reason)) return 'answers';
  return SILENT.test(reason) ? 'silent' : 'unknown';
}

/** What a change of health tells about the remote; undefined when nothing. */
export function verdictOfChange(change: { readonly from: Health; readonly to: Health; readonly reason: string | null }): Verdict | undefined {
  if (change.from === 'probing' && change.to === 'healthy') return 'answers';
  const verdict = change.to === 'failed' && change.reason !== null ? verdictOfReason(change.reason) : 'unknown';
  return verdict === 'unknown' ? undefined : verdict;
}

/** A mounted share's own check is of now, and of the probes only an answer counts beside it. */
export function evidenceOf(share: LiveShare, lastProbe: Evidence | undefined, nowMs: number): readonly Evidence[] {
  const probes = lastProbe ? [lastProbe] : [];
  if (share.mount === undefined || share.remoteAnswers === undefined) return probes;
  return [{ verdict: share.remoteAnswers ? 'answers' : 'silent', atMs: nowMs }, ...probes.filter(({ verdict }) => verdict === 'answers')];
}

/** All evidence about one connection in one word. One that answers is enough. */
export function weigh(evidence: readonly Evidence[], nowMs: number): Verdict {
  const isFresh = ({ atMs }: Evidence, ms: number): boolean => nowMs - atMs < ms;
  if (evidence.some((one) => one.verdict === 'answers' && isFresh(one, ANSWER_FRESH_MS))) return 'answers';
  return evidence.some((one) => one.verdict === 'silent' && isFresh(one, SILENCE_FRESH_MS)) ? 'silent' : 'unknown';
}
