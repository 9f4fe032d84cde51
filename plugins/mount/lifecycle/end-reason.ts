import type { ManagedProcess } from 'mountkeeper';
import { inPlainWords } from '../rclone/error-messages.ts';

export const UNMOUNTED = 'the share was unmounted by somebody else';

/** Why a mount's process has ended, in plain words. */
export function endReason(exit: Awaited<ManagedProcess['exited']>, lines: readonly string[]): string {
  if (exit.signal === 'SIGKILL')
    return "the mount's process was killed (by hand, or by the system when memory ran out)";
  if (exit.signal !== null) return `the mount's process was ended by ${exit.signal}`;
  if (exit.code === 0) return UNMOUNTED;
  return inPlainWords(
    lines,
    `the mount's process ended${exit.code === null ? '' : ` with exit code ${exit.code}`}`,
  );
}
