import type { Clock } from 'mountkeeper';
import type { RcClient } from './rc-client.ts';

const REQUEUE_EVERY_MS = 60_000;

interface QueueItem { readonly id: number; readonly expiry?: number; readonly uploading?: boolean }

export interface FlushOptions {
  readonly rc: RcClient;
  readonly fs: string;
  readonly clock: Clock;
  readonly calls: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  /** For an rclone whose queue cannot be told to hurry: queues what waits anew. */
  readonly requeue: (signal: AbortSignal) => Promise<void>;
}

/** Has what waits for its write-back delay go up now. */
export function createFlush({ rc, fs, clock, calls, requeue }: FlushOptions): (signal: AbortSignal) => Promise<void> {
  let requeuedAtMs = -Infinity;

  /** Not often: it starts the write-back delay anew. */
  async function queueAnew(signal: AbortSignal): Promise<void> {
    if (clock.monotonic() - requeuedAtMs < REQUEUE_EVERY_MS) return;
    requeuedAtMs = clock.monotonic();
    await requeue(signal);
  }

  return async (signal) => {
    const known = await calls(signal);
    if (!known.has('vfs/queue') || !known.has('vfs/queue-set-expiry')) return queueAnew(signal);
    const { queue = [] } = await rc.call<{ queue?: readonly QueueItem[] }>('vfs/queue', { fs }, signal);
    for (const item of queue) {
      if (item.uploading === true || (item.expiry ?? 1) <= 0) continue;
      // Gone from the queue meanwhile: it goes up already.
      await rc.call('vfs/queue-set-expiry', { fs, id: item.id, expiry: -1 }, signal).catch(() => signal.throwIfAborted());
    }
  };
}
