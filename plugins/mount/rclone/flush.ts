import type { RcClient } from './remote-control.ts';

interface QueueItem {
  readonly id: number;
  readonly expiry?: number;
  readonly uploading?: boolean;
}

/** Uploads now what waits for its write-back delay. `fs` is the remote in rclone's notation. */
export async function flushQueue(rc: RcClient, fs: string, signal: AbortSignal): Promise<void> {
  const { queue = [] } = await rc.call<{ queue?: readonly QueueItem[] }>('vfs/queue', { fs }, signal);
  for (const item of queue) {
    if (item.uploading === true || (item.expiry ?? 1) <= 0) continue;
    // It left the queue meanwhile, so it is being uploaded already.
    await rc
      .call('vfs/queue-set-expiry', { fs, id: item.id, expiry: -1 }, signal)
      .catch(() => signal.throwIfAborted());
  }
}
