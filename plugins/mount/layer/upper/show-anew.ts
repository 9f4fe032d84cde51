/** Makes the kernel look anew for entries that users see by another name than before. */
import { join } from 'node:path';
import type { Clock, LeavingEntry, Logger, Processes } from 'mountkeeper';
import { findMany } from './find-many.ts';

const LOOK_TIMEOUT_MS = 20_000;
/** Together some two seconds: who asks for a name again and again keeps it for the most of the time. */
const MOST_DROPS = 15;
/** Where nothing is found, users may have renamed or deleted it meanwhile. */
const DROPS_FOR_MISSING = 5;
/** Between two drops; longer by as much each time. */
const FIRST_REST_MS = 20;

export interface ShowAnewOptions {
  readonly mountPoint: string;
  readonly dropNames: () => Promise<void>;
  readonly processes: Pick<Processes, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The kernel keeps the names that a call has come by until it ends, also one that waited meanwhile: to all who come
 * later they would answer ESTALE. So names are dropped until all is shown, or users have renamed or deleted it.
 * Resolves with the paths that are shown, and never rejects.
 */
export async function showAnew(
  entries: readonly LeavingEntry[],
  options: ShowAnewOptions,
): Promise<ReadonlySet<string>> {
  const { clock, dropNames, log } = options;
  const shown = new Set<string>();
  let left = entries;
  try {
    for (let tries = 0; left.length > 0 && tries <= MOST_DROPS; tries += 1) {
      if (tries > 0) {
        await clock.sleep((tries - 1) * FIRST_REST_MS);
        await dropNames();
      }
      const { seen, failing } = await look(left, options);
      for (const path of seen) shown.add(path);
      left = left.filter(({ path }) => !shown.has(path) && (failing.has(path) || tries < DROPS_FOR_MISSING));
    }
  } catch (error) {
    log.warn({ err: error }, 'what was renamed could not be looked at, and may answer "stale" for a while');
  }
  return shown;
}

/** What the overlay shows at the new place by now, a folder with its content, and what cannot be looked at. */
async function look(
  entries: readonly LeavingEntry[],
  { mountPoint, processes }: ShowAnewOptions,
): Promise<{ readonly seen: readonly string[]; readonly failing: ReadonlySet<string> }> {
  const at = ({ path }: LeavingEntry): string => join(mountPoint, path);
  const { found, failed } = await findMany(entries.map(at), {
    processes,
    isInside: true,
    timeoutMs: LOOK_TIMEOUT_MS,
  });
  const isShown = (entry: LeavingEntry): boolean =>
    found.get(at(entry))?.self.type === (entry.kind === 'folder' ? 'd' : 'f');
  return {
    seen: entries.filter(isShown).map(({ path }) => path),
    failing: new Set(entries.filter((entry) => failed.has(at(entry))).map(({ path }) => path)),
  };
}
