/** Whose word is taken. */
import type { Stats } from 'node:fs';

const OTHERS_WRITE = 0o022;

/**
 * As root, what stands in a file is done with root's rights: its writer chooses what is connected to, with which
 * keys and programs. So it must be root's, or of the user who became root by sudo, and nobody else's to write.
 * Undefined where it may be taken.
 */
export function foreignProblem({ uid, mode }: Pick<Stats, 'uid' | 'mode'>): string | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const sudoer = process.env['SUDO_UID'] ?? '';
  if (uid !== 0 && String(uid) !== sudoer)
    return `it belongs to user ${uid}, whose word root does not take; run this as that user, or look at it and copy it`;
  if ((mode & OTHERS_WRITE) !== 0) return 'others may write it; look at what is in it, then run chmod go-w';
  return undefined;
}
