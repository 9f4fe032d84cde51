import type { QueuedUpload } from 'mountkeeper';
import type { RcClient } from './control/remote-control.ts';

/** As `vfs/queue` gives it; `name` is the path in the share. */
interface QueueItem {
  readonly name: string;
  readonly size?: number;
  /** Seconds from now. */
  readonly expiry?: number;
  readonly tries?: number;
  readonly uploading?: boolean;
}

/** The time at which a file goes is asked for again and again; it is the same one to this many milliseconds. */
const ROUNDED_MS = 5_000;

/** What rclone uploads now, then what waits, by the time at which it goes. */
export async function uploadQueue(
  rc: Pick<RcClient, 'call'>,
  fs: string,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<readonly QueuedUpload[]> {
  const { queue } = await rc.call<{ queue?: readonly QueueItem[] | null }>('vfs/queue', { fs }, signal);
  return (queue ?? []).map(({ name, size = 0, expiry = 0, tries = 0, uploading = false }) => ({
    path: name,
    bytes: size,
    isUploading: uploading,
    // rclone counts the one that is going on as well.
    failures: uploading ? Math.max(0, tries - 1) : tries,
    ...(!uploading && expiry > 0 && { goesAt: roundedUp(now + expiry * 1_000) }),
  }));
}

function roundedUp(at: number): number {
  return Math.ceil(at / ROUNDED_MS) * ROUNDED_MS;
}
