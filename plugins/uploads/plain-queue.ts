/** The queue of a mount that another mounter has made, without this uploader: it knows its own. */
import type { Clock, Mount, QueuedUpload } from 'mountkeeper';

const ANSWER_MS = 5_000;

/** Undefined while nobody can be asked: the share is not mounted. Rejects when the queue cannot be seen. */
export async function plainQueue(
  mount: Mount | undefined,
  clock: Clock,
): Promise<readonly QueuedUpload[] | undefined> {
  return mount?.uploadQueue?.(clock.deadline(ANSWER_MS));
}

export function stateOf({ isUploading, failures }: QueuedUpload): 'uploading' | 'stuck' | 'waiting' {
  if (isUploading) return 'uploading';
  return failures > 0 ? 'stuck' : 'waiting';
}
