import type { RcClient } from './remote-control.ts';

interface QueueItem {
  readonly id: number;
  readonly expiry?: number;
  readonly uploading?: boolean;
}

/** Has what waits for its write-back delay go up now. `fs` is the remote as rclone names it. */
export function createFlush(rc: RcClient, fs: string): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    const { queue = [] } = await rc.call<{ queue?: readonly QueueItem[] }>('vfs/queue', { fs }, signal);
    for (const item of queue) {
      if (item.uploading === true || (item.expiry ?? 1) <= 0) continue;
      // Gone from the queue meanwhile: it goes up already.
      await rc
        .call('vfs/queue-set-expiry', { fs, id: item.id, expiry: -1 }, signal)
        .catch(() => signal.throwIfAborted());
    }
  };
}
