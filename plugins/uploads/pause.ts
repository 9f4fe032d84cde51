/** Pausing the uploads of a share and sending them, by this uploader or by the share's mount. */
import type { Clock, Mount } from 'mountkeeper';
import type { ManagedUploads } from './transfer/managed.ts';

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

export interface OneUpload {
  /** Undefined for a mount without this uploader: it has the queue, if there is one. */
  readonly uploads: Pick<ManagedUploads, 'sendNow'> | undefined;
  readonly mount: Mount | undefined;
  /** A file, or a folder with all that waits in it. */
  readonly path: string;
}

/** Sends one path next, through a pause. Rejects with a plain sentence when it cannot be sent. */
export async function sendOne({ uploads, mount, path }: OneUpload, clock: Clock): Promise<void> {
  if (uploads) {
    await uploads.sendNow(path);
    return;
  }
  if (!mount) throw new Error('the share is not mounted');
  if (!mount.sendNow) throw new Error('single files of this share cannot be sent');
  await mount.sendNow(path, clock.deadline(ANSWER_MS));
}
