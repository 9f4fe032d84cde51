/**
 * Keeps apart what must not meet: folders that are being moved on the remote, and the share's listings being
 * read anew. Between the move and the mark that tells of it, a listing read anew would show the folder empty,
 * and users might remove it.
 */
import type { Clock } from 'mountkeeper';
import type { Records } from '../compare/records.ts';
import type { Scan } from '../compare/scan.ts';

const LOOK_MS = 100;

export interface MoveLockOptions {
  readonly clock: Clock;
  /** True while a step is under way that moves something. */
  readonly isMoving: () => boolean;
  /** Brings about that marks are brought up to date. */
  readonly hasten: () => void;
}

export class MoveLock {
  readonly #options: MoveLockOptions;
  #holds = 0;
  /** Marks of folders say something else than the remote, as the last look showed it. */
  #isUnsettled = true;

  constructor(options: MoveLockOptions) {
    this.#options = options;
  }

  /** No move may begin. */
  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Users see each folder where the remote has it. */
  get isSettled(): boolean {
    return !this.#isUnsettled && !this.#options.isMoving();
  }

  /** The remote has moved something: what a look showed before says nothing any more. */
  moved(): void {
    this.#isUnsettled = true;
  }

  looked(scan: Scan, records: Pick<Records, 'moves'>): void {
    this.#isUnsettled = isUnsettled(scan, records);
  }

  async hold(signal: AbortSignal): Promise<() => void> {
    const { clock, hasten } = this.#options;
    this.#holds += 1;
    try {
      while (!this.isSettled) {
        hasten();
        await clock.sleep(LOOK_MS, signal);
      }
    } catch {
      this.#holds -= 1;
      throw new Error(
        'folders that were renamed here are being moved on the remote just now; try again when that is done',
      );
    }
    return this.#release();
  }

  /** Nobody waits for what is under way. */
  holdAnyway(): () => void {
    this.#holds += 1;
    return this.#release();
  }

  #release(): () => void {
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds -= 1;
      isHeld = false;
    };
  }
}

function isUnsettled({ entries }: Scan, { moves }: Pick<Records, 'moves'>): boolean {
  for (const { kind, key = '', redirect } of entries.values()) {
    const move = moves.get(key);
    if (move === undefined || kind !== 'folder') continue;
    if (move.going !== undefined) return true;
    if ((move.former ?? []).length > 0 && redirect !== `/${move.at}`) return true;
  }
  return false;
}
