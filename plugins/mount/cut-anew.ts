import { join } from 'node:path';
import type { Logger } from 'mountkeeper';
import type { CacheTrees } from './cache-meta.ts';
import { findOldEnd } from './old-end.ts';
import type { Finding } from './old-end.ts';
import type { RcClient } from './rc-client.ts';
import type { CutOutcome, SoleCut } from './sole-cut.ts';

export interface CutAnewOptions {
  readonly rc: RcClient;
  readonly trees: CacheTrees;
  /** The remote as rclone names it. */
  readonly fs: string;
  readonly log: Logger;
  /** The name is below the mount. */
  readonly cut: (name: string, cut: SoleCut) => Promise<CutOutcome>;
}

export interface UploadLook {
  /** Something is on its way up, or open with changes. */
  readonly works: boolean;
  /** Files that are open with changes, below the cache's trees. */
  readonly open: readonly string[];
  /** Names of what goes up, or waits to. */
  readonly names: readonly string[];
}

interface Transferred { readonly name?: string; readonly completed_at?: string; readonly error?: string }

interface Attempts {
  finding: Finding | undefined;
  failed: number;
  isCutting: boolean;
  refusals: number;
  pauseLooks: number;
}

/** Looks without uploads after which it is asked all the same: one may have come and gone in between. */
const IDLE_LOOKS = 15;
/** A mount that is being taken down takes no changes any more. */
const TRIES = 3;
/** Looks between two tries while somebody has the file open. */
const LONGEST_PAUSE_LOOKS = 15;
const FRESH = { failed: 0, refusals: 0, pauseLooks: 0 };

/**
 * A file that is in the cache only in part and is made shorter gets its old end back from rclone, in both versions: when it is closed,
 * the missing parts are fetched in pieces that reach past the new end, and go up with the rest. The record says how long the file was
 * when it was closed, until somebody opens it again. So what was just closed, waits, goes up or has gone up is compared with its
 * record. What is longer is cut: in the cache as long as nobody else has it open there, else through the mount once it is up. What
 * somebody wrote to since stays as it is. Gives how many files lie on the NAS not yet as they should be.
 */
export function createCutAnew(options: CutAnewOptions): (look: UploadLook, signal: AbortSignal) => Promise<number> {
  const waiting = new Map<string, Attempts>();
  const cacheRoot = options.fs.slice(options.fs.indexOf(':') + 1);
  const newlyUp = createTransferredLook(options.rc);
  let open: ReadonlySet<string> = new Set();
  return async (look, signal) => {
    const openNow = new Set(look.open.map((path) => nameBelow(cacheRoot, path)));
    const closed = [...open].filter((name) => !openNow.has(name));
    open = openNow;
    for (const name of [...closed, ...look.names]) if (!waiting.has(name)) waiting.set(name, begin());
    for (const name of await newlyUp(look.works || waiting.size > 0, signal)) waiting.set(name, Object.assign(waiting.get(name) ?? begin(), FRESH));
    let isUpCount = 0;
    for (const [name, attempts] of waiting) {
      const next = await tend(name, attempts, openNow.has(name), options);
      if (next === 'done') waiting.delete(name);
      if (next === 'to be cut on the NAS') isUpCount += 1;
    }
    return isUpCount;
  };
}

function nameBelow(root: string, path: string): string {
  const folder = root.replaceAll(/^\/+|\/+$/g, '');
  return folder !== '' && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

function begin(): Attempts {
  return { finding: undefined, isCutting: false, ...FRESH };
}

async function tend(name: string, attempts: Attempts, isOpen: boolean, options: CutAnewOptions): Promise<'done' | 'waits' | 'to be cut on the NAS'> {
  const path = join(options.fs.slice(options.fs.indexOf(':') + 1), name);
  const { finding, next } = await findOldEnd(options.trees, path, attempts.finding);
  attempts.finding = finding;
  if (next === 'changed') options.log.warn({ path: name }, 'file that had its old end again was changed since, it stays as it is');
  if (next === 'nothing' || next === 'changed') return 'done';
  if (next === 'wait' || (isOpen && next.inCache !== undefined)) return 'waits';
  if (!attend(name, next, attempts, options)) return 'done';
  return next.inCache === undefined ? 'to be cut on the NAS' : 'waits';
}

/** False when nothing more can be done about the file. */
function attend(name: string, cut: SoleCut, attempts: Attempts, options: CutAnewOptions): boolean {
  const { log } = options;
  if (attempts.failed >= TRIES) {
    log.error({ path: name, bytes: cut.bytes }, 'file that was made shorter keeps its old end: it cannot be cut anew');
    return false;
  }
  attempts.pauseLooks -= 1;
  if (attempts.isCutting || attempts.pauseLooks >= 0) return true;
  attempts.isCutting = true;
  void options.cut(name, cut).then((outcome) => {
    attempts.refusals = outcome === 'cut' ? 0 : attempts.refusals + 1;
    attempts.pauseLooks = Math.min(LONGEST_PAUSE_LOOKS, attempts.refusals);
    if (outcome === 'cut') log.warn({ path: name, bytes: cut.bytes }, 'file that was made shorter had its old end again, it is cut anew');
  }, (error: unknown) => {
    attempts.failed += 1;
    log.warn({ path: name, err: error }, 'file not cut anew');
  }).finally(() => (attempts.isCutting = false));
  return true;
}

/** Names of what has gone up since the last look. */
function createTransferredLook(rc: RcClient): (works: boolean, signal: AbortSignal) => Promise<readonly string[]> {
  let known: ReadonlySet<string> = new Set();
  let worked = false;
  let idleLooks = 0;
  return async (works, signal) => {
    const isDue = works || worked || idleLooks >= IDLE_LOOKS;
    idleLooks = isDue ? 0 : idleLooks + 1;
    worked = works;
    if (!isDue) return [];
    const now = await transfersNow(rc, signal);
    const fresh = [...now].filter(([key]) => !known.has(key)).map(([, name]) => name);
    known = new Set(now.keys());
    return fresh;
  };
}

/** The last ones that have ended well, at most 100; by what tells each from all others, their names. Not being told is no fault of the mount. */
async function transfersNow(rc: RcClient, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { transferred } = await rc.call<{ transferred?: readonly Transferred[] | null }>('core/transferred', {}, signal).catch(() => {
    signal.throwIfAborted();
    return { transferred: [] };
  });
  const done = (transferred ?? []).filter(({ name, error }) => name !== undefined && (error ?? '') === '');
  return new Map(done.map(({ name = '', completed_at = '' }) => [`${name}\0${completed_at}`, name]));
}
