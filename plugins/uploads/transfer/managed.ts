/** Options of a share's uploader, and what people may ask of it. */
import type { Clock, Conflict, Logger, Processes, ShareUploads, UploadOptions } from 'mountkeeper';
import type { Keep } from '../conflicts/resolve.ts';
import type { ProofOptions } from '../proof/proof-jobs.ts';
import type { Receipt } from '../proof/receipt.ts';
import type { Proof } from '../proof/same-content.ts';
import type { Discarded, DiscardRequest } from './leaving/discard.ts';
import type { Verification } from '../proof/verify.ts';

export interface ShareUploaderOptions extends UploadOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly onConflict: (conflict: Conflict) => void;
  /** Read for each step. Default: by hash, where the remote has one. */
  readonly proof?: () => Proof;
  /** How long folders that are no longer needed stay in the upper folder, in milliseconds. */
  readonly restMs?: number;
  /** Most entries of the upper folder that are read without `find`. */
  readonly fewEntries?: number;
  /** False: scans only when asked. */
  readonly isSelfDriven?: boolean;
}

/** What people may ask of a share's uploader. */
export interface ManagedUploads extends ShareUploads {
  /**
   * Sends a path, and everything in it, next, without quiet time and despite a pause. Rejects with a plain sentence
   * when nothing waits there.
   */
  sendNow(path: string): Promise<void>;
  /** Rejects with a plain sentence when it cannot be done in the present state. */
  resolve(conflict: Pick<Conflict, 'path' | 'copy'>, keep: Keep): Promise<void>;
  /**
   * Gives up one file that waits: it is kept for some days, and the remote's version shows again. Rejects with a plain
   * sentence when it cannot be done, or is another version than the one asked for; nothing is given up then.
   */
  discard(asked: DiscardRequest): Promise<Discarded>;
  /** Compares uploaded files that are still here with what the remote has now. `''`: all of them. */
  verify(path: string, options: ProofOptions): Promise<Verification>;
  /**
   * Finds out which files at and below a path are proved to be on the remote; `''` is the whole share. Rejects
   * with a plain sentence when the remote does not answer or has nothing there.
   */
  receipt(path: string, options: ProofOptions): Promise<Receipt>;
}
