/** Pausing the uploads of a share, with a write layer or without: the mount knows how. */
import type { Clock, Mount } from 'mountkeeper';

const ANSWER_MS = 10_000;

export function canPause(mount: Mount | undefined): mount is Mount {
  return mount?.uploadPause !== undefined && mount.uploadPause.obstacle === undefined;
}

export function isPaused(mount: Mount | undefined): boolean {
  return mount?.uploadPause?.until !== undefined;
}

/** Rejects with a plain sentence when nothing was paused. */
export async function pauseUploads(mount: Mount | undefined, until: number, clock: Clock): Promise<void> {
  if (!mount?.uploadPause) throw new Error('the share is not mounted');
  await mount.uploadPause.set(until, clock.deadline(ANSWER_MS));
}

/** Sends what waits, which ends a pause. */
export async function sendNow(mount: Mount | undefined, clock: Clock): Promise<void> {
  if (!mount) throw new Error('the share is not mounted');
  await mount.flush(clock.deadline(ANSWER_MS));
}
