import { join } from 'node:path';
import type { Logger } from 'mountkeeper';
import { dataFile, readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { covers, remoteBytes } from '../cache/ranges.ts';
import type { RcClient } from '../rclone/remote-control.ts';

export interface TruncateFixOptions {
  readonly rc: RcClient;
  readonly trees: CacheTrees;
  /** The remote as rclone names it. */
  readonly fs: string;
  readonly log: Logger;
  /** Makes a file of the mount no longer than that. The name is below the mount. */
  readonly cut: (name: string, bytes: number) => Promise<unknown>;
}

interface Transferred {
  readonly name?: string;
  readonly completed_at?: string;
  readonly error?: string;
}

/** Looks without uploads after which it is asked all the same: one may have come and gone in between. */
const IDLE_LOOKS = 15;
/** A mount that is being taken down takes no changes any more. */
const TRIES = 3;

/**
 * A file that is in the cache only in part and is made shorter gets its old end back from rclone, in both
 * versions: when it is closed, or read before, the missing parts are fetched in pieces that reach past the
 * new end, and go up with the rest. The record says how long the file was when it was closed, until somebody
 * opens it again. So what has just gone up is compared with its record, and what is longer is cut anew: all
 * of it is in the cache then, and nothing is fetched. Gives how many files are not yet as they should be.
 */
export function createTruncateFix(
  options: TruncateFixOptions,
): (works: boolean, signal: AbortSignal) => Promise<number> {
  const waiting = new Map<string, Attempts>();
  let known = new Set<string>();
  let worked = false;
  let idleLooks = 0;
  return async (works, signal) => {
    const isDue = works || worked || waiting.size > 0 || idleLooks >= IDLE_LOOKS;
    idleLooks = isDue ? 0 : idleLooks + 1;
    worked = works;
    if (!isDue) return 0;
    const now = await transfersNow(options.rc, signal);
    for (const [key, name] of now) if (!known.has(key)) waiting.set(name, { failed: 0, isCutting: false });
    known = new Set(now.keys());
    for (const [name, attempts] of waiting)
      if (!(await attend(name, attempts, options))) waiting.delete(name);
    return waiting.size;
  };
}

interface Attempts {
  failed: number;
  isCutting: boolean;
}

/** False when there is nothing, or nothing more, to be done about the file. */
async function attend(name: string, attempts: Attempts, options: TruncateFixOptions): Promise<boolean> {
  const { cut, log } = options;
  const bytes = await lengthOf(name, options);
  if (bytes === undefined) return false;
  if (attempts.failed >= TRIES) {
    log.error(
      { path: name, bytes },
      'file that was made shorter keeps its old end on the NAS: it cannot be cut anew',
    );
    return false;
  }
  if (attempts.isCutting) return true;
  log.warn({ path: name, bytes }, 'file that was made shorter had its old end again, it is cut anew');
  attempts.isCutting = true;
  void cut(name, bytes)
    .catch((error: unknown) => {
      attempts.failed += 1;
      log.warn({ path: name, err: error }, 'file not cut anew');
    })
    .finally(() => (attempts.isCutting = false));
  return true;
}

/** What the file's length is to be, where it is longer. */
async function lengthOf(name: string, { trees, fs }: TruncateFixOptions): Promise<number | undefined> {
  const root = fs.slice(fs.indexOf(':') + 1);
  const meta = await readMeta(join(trees.meta, root, name));
  if (meta === undefined || meta === 'torn' || meta.Dirty || remoteBytes(meta) <= meta.Size) return undefined;
  const content = await dataFile(join(trees.data, root, name));
  return content?.bytes === remoteBytes(meta) && covers(meta.Rs, content.bytes) ? meta.Size : undefined;
}

/**
 * The last ones that have ended well, at most 100; by what tells each from all others, their names. Not being
 * told is no fault of the mount.
 */
async function transfersNow(rc: RcClient, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { transferred } = await rc
    .call<{ transferred?: readonly Transferred[] | null }>('core/transferred', {}, signal)
    .catch(() => {
      signal.throwIfAborted();
      return { transferred: [] };
    });
  const done = (transferred ?? []).filter(({ name, error }) => name !== undefined && (error ?? '') === '');
  return new Map(done.map(({ name = '', completed_at = '' }) => [`${name}\0${completed_at}`, name]));
}
