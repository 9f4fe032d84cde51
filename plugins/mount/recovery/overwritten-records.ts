import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';

const ASK_MS = 5_000;
/** A file is looked at in each round for so long after it was queued: rclone's mistake comes within 5 s. */
const CLOSELY_MS = 15_000;
/** Later, if somebody had the former file open for long. */
const AGAIN_MS = 60_000;
/** Records in one round, the doubtful and those of new files first: thousands may wait while the NAS is away. */
const MOST_AT_ONCE = 500;

export interface OverwrittenRecordsOptions {
  readonly rc: Pick<RcClient, 'call'>;
  readonly trees: CacheTrees;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes rclone save its record of a file. The name is relative to the mount. */
  readonly saveRecord: (name: string, modifiedMs: number) => Promise<unknown>;
}

interface Queued {
  readonly name: string;
  readonly id: number;
  readonly uploading?: boolean;
}

interface Seen {
  /** rclone keeps the id when a file is renamed, over another one as well: under another name all begins anew. */
  readonly name: string;
  readonly sinceMs: number;
  readonly lookedAtMs: number;
  /** It was going up when it was last looked at, with a record that says that nothing waits. */
  readonly isDoubtful: boolean;
}

/**
 * rclone (1.75 as well) keeps a downloader for five seconds after a file was read, and saves the file's
 * record when it ends. When another file was renamed over it meanwhile, as programs save, the record of that
 * one is overwritten: on the disk nothing waits any more, and a kill loses what was saved. Until then rclone
 * knows better. So where a file is in its queue, and its record says that nothing waits, the file's time is
 * set through the mount: rclone saves what it has in memory. It had also set the former file's time.
 */
export class OverwrittenRecords {
  readonly #options: OverwrittenRecordsOptions;
  readonly #seen = new Map<number, Seen>();
  #isQueued = true;

  constructor(options: OverwrittenRecordsOptions) {
    this.#options = options;
  }

  /** Whether anything waits in rclone's queue; without that nothing is asked. */
  noteQueued(files: number): void {
    this.#isQueued = files > 0;
  }

  /** To be called every second or two. */
  async mend(): Promise<void> {
    if (!this.#isQueued) return this.#seen.clear();
    const queue = await this.#queue();
    for (const { isDoubtful, ...one } of this.#due(queue)) {
      if (!(await this.#saysNothingWaits(one))) continue;
      // What went up meanwhile is rightly recorded so.
      const now = (await this.#queue()).find(({ id }) => id === one.id);
      if (now === undefined) continue;
      // What is just through is still called uploading, for a moment; with the NAS away, so is what waits.
      if (now.uploading === true && !isDoubtful) this.#doubt(one);
      else await this.#save(one.name);
    }
  }

  #doubt({ id, name }: Queued): void {
    const seen = this.#seen.get(id);
    if (seen?.name === name) this.#seen.set(id, { ...seen, isDoubtful: true });
  }

  async #queue(): Promise<readonly Queued[]> {
    const { clock, fs, rc } = this.#options;
    const { queue } = await rc.call<{ queue?: readonly Queued[] | null }>(
      'vfs/queue',
      { fs },
      clock.deadline(ASK_MS),
    );
    return queue ?? [];
  }

  #due(queue: readonly Queued[]): readonly (Queued & Seen)[] {
    const nowMs = this.#options.clock.monotonic();
    const ids = new Set(queue.map(({ id }) => id));
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id);
    const known = queue.map((one) => {
      const seen = this.#seenOf(one, nowMs);
      this.#seen.set(one.id, seen);
      return { ...one, ...seen, isNew: nowMs - seen.sinceMs <= CLOSELY_MS };
    });
    const due = known.filter(
      ({ isNew, isDoubtful, lookedAtMs }) => isNew || isDoubtful || nowMs - lookedAtMs >= AGAIN_MS,
    );
    const first = due
      .sort(
        (a, b) =>
          Number(b.isDoubtful) - Number(a.isDoubtful) ||
          Number(b.isNew) - Number(a.isNew) ||
          a.lookedAtMs - b.lookedAtMs,
      )
      .slice(0, MOST_AT_ONCE);
    // What is doubtful for a second time is saved: only the look of this round counts.
    for (const { id, name, sinceMs } of first)
      this.#seen.set(id, {
        name,
        sinceMs,
        lookedAtMs: nowMs,
        isDoubtful: false,
      });
    return first;
  }

  #seenOf({ id, name }: Queued, nowMs: number): Seen {
    const seen = this.#seen.get(id);
    return seen?.name === name ? seen : { name, sinceMs: nowMs, lookedAtMs: -Infinity, isDoubtful: false };
  }

  async #saysNothingWaits({ name }: Queued): Promise<boolean> {
    const meta = await readMeta(join(this.#options.trees.meta, this.#root, name));
    return meta !== undefined && meta !== 'torn' && !meta.Dirty;
  }

  async #save(name: string): Promise<void> {
    const { log, saveRecord, trees } = this.#options;
    // The former file's time was set a moment after this one was saved.
    const stats = await stat(join(trees.data, this.#root, name)).catch(undefinedWhenMissing);
    if (stats === undefined) return;
    log.info({ path: name }, 'rclone overwrote the record of a file that waits; it saves it again');
    await saveRecord(name, stats.ctimeMs);
  }

  get #root(): string {
    const { fs } = this.#options;
    return fs.slice(fs.indexOf(':') + 1);
  }
}
