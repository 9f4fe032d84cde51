/** What a share's uploader is given, and what may be asked of it. */
import type { Clock, Conflict, Logger, Processes, ShareUploads, UploadOptions } from 'mountkeeper';
import type { Keep } from '../conflicts/resolve.ts';
import type { Verified } from '../proof/verify.ts';

export interface ShareUploaderOptions extends UploadOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly onConflict: (conflict: Conflict) => void;
  /** How long folders that need not be in the upper folder any more stay in it, in milliseconds. */
  readonly restMs?: number;
  /** Off: looks only when asked. */
  readonly isSelfDriven?: boolean;
}

/** What people may ask of a share's uploader. */
export interface ManagedUploads extends ShareUploads {
  /** Milliseconds since the epoch; undefined when nothing is paused. */
  readonly pausedUntil: number | undefined;
  /** Nothing begins to go until then but what `sendNow` names; `flush` ends it. 0: goes on at once. */
  pause(until: number): void;
  /** A path, and what is in it, goes next, without quiet time and through a pause. */
  sendNow(path: string): void;
  /** Rejects with a plain sentence when it cannot be done as things are. */
  resolve(conflict: Pick<Conflict, 'path' | 'copy'>, keep: Keep): Promise<void>;
  /**
   * What was brought to the remote and still lies here, held against what the remote has now. `''`: all of
   * it.
   */
  verify(path: string): Promise<readonly Verified[]>;
}
