import type { RcClient } from '../rclone/remote-control.ts';

interface QueueItem {
  readonly size?: number;
}

export interface QueueSource {
  readonly rc: Pick<RcClient, 'call'>;
  /** The remote as rclone names it. */
  readonly fs: string;
}

/**
 * Bytes of what waits in rclone's queue or goes up; undefined where it cannot be told for all `files`. Asked
 * only while there are some.
 */
export async function queuedBytes(
  { rc, fs }: QueueSource,
  files: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    const { queue = [] } = await rc.call<{ queue?: readonly QueueItem[] }>('vfs/queue', { fs }, signal);
    const isWhole =
      queue.length === files && queue.every(({ size }) => typeof size === 'number' && size >= 0);
    return isWhole ? queue.reduce((sum, { size = 0 }) => sum + size, 0) : undefined;
  } catch {
    // Rclone before 1.68 does not tell, and the figures are worth more than this one.
    signal.throwIfAborted();
    return undefined;
  }
}
