/** Tells when a FUSE file system has answered all that it was asked. */
import type { Clock, MountReader, MountTable } from 'mountkeeper';

/** Longer than a slow line takes for an answer. One that waits longer may be answered for what is there afterwards. */
const LONGEST_MS = 1_000;

export interface QuietTools {
  readonly mountTable: Pick<MountTable, 'find'>;
  readonly mountReader: Pick<MountReader, 'waiting'>;
  readonly clock: Pick<Clock, 'deadline'>;
}

/**
 * Resolves when the file system at that mount point has answered all calls, or after a second; at once where the kernel
 * does not tell. Whoever asks must have seen to it that no others come.
 */
export async function untilQuiet(
  place: string,
  { clock, mountReader, mountTable }: QuietTools,
): Promise<void> {
  const mount = await mountTable.find(place);
  if (mount === undefined) return;
  const deadline = clock.deadline(LONGEST_MS);
  // Each look is a process of its own, so there is no need to rest in between.
  // Where the kernel does not tell, nothing is waited for.
  const waiting = (): Promise<number> => mountReader.waiting(mount.deviceMinor).catch(() => 0);
  while (!deadline.aborted && (await waiting()) > 0);
}
