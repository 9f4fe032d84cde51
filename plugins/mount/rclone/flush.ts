import type { RcClient } from './control/remote-control.ts';

interface QueueItem {
  readonly id: number;
  readonly expiry?: number;
  readonly uploading?: boolean;
}

export interface FlushOptions {
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly signal: AbortSignal;
  /** Asked before each file: a pause that was begun meanwhile is not undone. */
  readonly isPaused: () => boolean;
}

/** Uploads now what waits for its write-back delay. */
export async function flushQueue(
  rc: Pick<RcClient, 'call'>,
  { fs, signal, isPaused }: FlushOptions,
): Promise<void> {
  const { queue } = await rc.call<{ queue?: readonly QueueItem[] | null }>('vfs/queue', { fs }, signal);
  for (const item of queue ?? []) {
    if (isPaused()) return;
    if (item.uploading === true || (item.expiry ?? 1) <= 0) continue;
    // It left the queue meanwhile, so it is being uploaded already.
    await rc
      .call('vfs/queue-set-expiry', { fs, id: item.id, expiry: -1 }, signal)
      .catch(() => signal.throwIfAborted());
  }
}
