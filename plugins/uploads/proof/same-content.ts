/** Whether the remote has the content of a local file, as far as a share is to make sure. */
import type { RemoteFiles, RemoteVersion } from 'mountkeeper';
import { hasSameContent } from './versions.ts';

/** Least to most certain; see the key `upload_proof`. */
export const PROOFS = ['size', 'hash', 'read-back'] as const;
export type Proof = (typeof PROOFS)[number];
export const DEFAULT_PROOF: Proof = 'hash';

export interface ProofTools {
  readonly remote: Pick<RemoteFiles, 'precisionMs' | 'readBack'>;
  readonly proof: Proof;
  readonly signal: AbortSignal;
}

export interface Compared {
  /** Absolute path on the local disk. */
  readonly file: string;
  readonly target: string;
  /** What the remote has at the target, with its hash where it has one. */
  readonly version: RemoteVersion;
}

/**
 * Undefined: size and time have to do. Where the remote has neither hash nor times, a size proves next to
 * nothing, so the content is read back. Rejects when that fails.
 */
export async function isSameContent(
  { file, target, version }: Compared,
  { remote, proof, signal }: ProofTools,
): Promise<boolean | undefined> {
  if (proof === 'size') return undefined;
  if (proof === 'hash' && Number.isFinite(remote.precisionMs)) return hasSameContent(file, version, signal);
  return compareContent({ file, target, version }, { remote, proof, signal });
}

/** By the remote's hash, and where it has none, or where the share asks for that, by reading it back. */
export async function compareContent(
  { file, target, version }: Compared,
  { remote, proof, signal }: ProofTools,
): Promise<boolean> {
  const byHash = proof === 'read-back' ? undefined : await hasSameContent(file, version, signal);
  if (byHash !== undefined) return byHash;
  const hash = await remote.readBack(target, { signal });
  return (await hasSameContent(file, { ...version, hash }, signal)) === true;
}
