import type { RcClient } from './rc-client.ts';

export interface QueuedNamesOptions {
  readonly rc: RcClient;
  readonly fs: string;
  readonly calls: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
}

interface QueueItem { readonly id: number; readonly name?: string }

/** A longer queue is not asked for: its answer would cost more than it is worth at every look. */
const LONGEST_QUEUE = 200;

/** Names of what was queued since the last look, of rclones that tell. To be told how many are queued. */
export function createQueuedNames({ rc, fs, calls }: QueuedNamesOptions): (queued: number, signal: AbortSignal) => Promise<readonly string[]> {
  let known: ReadonlySet<number> = new Set();
  return async (queued, signal) => {
    if (queued === 0 || queued > LONGEST_QUEUE) return [];
    try {
      if (!(await calls(signal)).has('vfs/queue')) return [];
      const { queue } = await rc.call<{ queue?: readonly QueueItem[] | null }>('vfs/queue', { fs }, signal);
      const fresh = (queue ?? []).filter(({ id }) => !known.has(id));
      known = new Set((queue ?? []).map(({ id }) => id));
      return fresh.flatMap(({ name }) => name ?? []);
    } catch {
      signal.throwIfAborted();
      return [];
    }
  };
}
