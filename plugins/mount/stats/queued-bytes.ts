import type { RcClient } from '../rclone/control/remote-control.ts';

interface QueueItem {
  readonly size?: number;
}

export interface QueueSource {
  readonly rc: Pick<RcClient, 'call'>;
  /** The remote in rclone's notation. */
  readonly fs: string;
}

/**
 * Bytes of the files in rclone's queue; undefined when the size of one of the `files` is unknown. Asks only
 * when there are some.
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
    // rclone before 1.68 does not report the queue, and the other figures are still useful.
    signal.throwIfAborted();
    return undefined;
  }
}
