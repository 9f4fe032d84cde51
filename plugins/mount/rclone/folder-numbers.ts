/**
 * Backends that address folders by numbers remember which path had which. A folder is moved by objects of rclone's of
 * their own (`sync/move`), and only these forget the former path: by it, all other calls still find the moved folder,
 * also when another one has come in its place, and would put into one what belongs into the other. So rclone forgets
 * all its objects before the next call, which makes new ones. The mount keeps its own, and reads numbers anew with each
 * listing; jobs that run keep theirs.
 */
import type { Clock } from 'mountkeeper';
import type { RcClient } from './control/remote-control.ts';

/** Such backends have something to flush; of those that rclone knows, this one alone does not say so. */
const UNSAID: ReadonlySet<string> = new Set(['fichier']);
const CALL_MS = 5_000;

export class FolderNumbers {
  readonly #rc: RcClient;
  readonly #clock: Clock;
  readonly #type: string;
  /** Moves by which they became outdated, and how many of these rclone has forgotten. A former daemon's are one. */
  #moves = 1;
  #forgotten = 0;

  constructor(rc: RcClient, clock: Clock, type: string) {
    this.#rc = rc;
    this.#clock = clock;
    this.#type = type;
  }

  /** To be called when a folder's move has ended, however. */
  moved(): void {
    this.#moves += 1;
  }

  /** To be called before each call that may go by a path. Where nothing has to be forgotten, it asks nothing. */
  async renew(features: Readonly<Record<string, boolean>>): Promise<void> {
    const moves = this.#moves;
    if (this.#forgotten >= moves) return;
    // Elsewhere it would cost the connections to the remote.
    if (features['DirCacheFlush'] === true || UNSAID.has(this.#type))
      await this.#rc.call('fscache/clear', {}, this.#clock.deadline(CALL_MS));
    this.#forgotten = Math.max(this.#forgotten, moves);
  }
}
