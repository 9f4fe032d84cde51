/**
 * A lock between moves of folders on the remote and refreshes of the share's listings. Between a move and
 * the update of its mark, a refreshed listing would show the folder empty, and users might delete it.
 */
import type { Clock } from 'mountkeeper';
import type { Records } from '../compare/records.ts';
import type { Scan } from '../compare/scan.ts';

const LOOK_MS = 100;
/** What nobody can be shown at its place, as where it is renamed all the time, holds nothing up for longer. */
const PENDING_LOOKS = 20;

export interface MoveLockOptions {
  readonly clock: Clock;
  /** True while a step that moves something is running. */
  readonly isMoving: () => boolean;
  /** True while users may still look for anything at a former place, a file without data here as well. */
  readonly isPending: () => boolean;
  /** Makes the uploader update marks soon. */
  readonly hasten: () => void;
}

export class MoveLock {
  readonly #options: MoveLockOptions;
  #holds = 0;
  /** The last scan showed folders whose mark differs from the remote. */
  #isUnsettled = true;

  constructor(options: MoveLockOptions) {
    this.#options = options;
  }

  /** True while no move may begin. */
  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** True when users see each folder at its place on the remote. */
  get isSettled(): boolean {
    return !this.#isUnsettled && !this.#options.isMoving();
  }

  /** A move was done on the remote: the last scan is out of date. */
  moved(): void {
    this.#isUnsettled = true;
  }

  looked(scan: Scan, records: Pick<Records, 'moves'>): void {
    this.#isUnsettled = isUnsettled(scan, records);
  }

  async hold(signal: AbortSignal): Promise<() => void> {
    const { clock, hasten, isPending } = this.#options;
    this.#holds += 1;
    try {
      for (let looks = 0; !this.isSettled || (isPending() && looks < PENDING_LOOKS); looks += 1) {
        hasten();
        await clock.sleep(LOOK_MS, signal);
      }
    } catch {
      // Only the signal ends the wait so.
      this.#holds -= 1;
      throw new Error(
        'folders that were renamed here are being moved on the remote just now; try again when that is done',
      );
    }
    return this.#release();
  }

  /** Takes the lock without waiting for running moves. */
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
