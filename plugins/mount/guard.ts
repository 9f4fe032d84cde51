import { link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { dataFile, filesBelow, readMeta } from './cache-meta.ts';
import type { CacheTrees, FileMeta } from './cache-meta.ts';
import { covers } from './cache-ranges.ts';

const GUARD = 'guard';
const RECOVERED = 'recovered';
const READ_LOG_EVERY_MS = 5_000;
const LOG_LINES = 400;

/** A cached file that rclone holds open with changes. */
export interface DirtyOpenFile {
  /** Below the cache's trees. */
  readonly path: string;
  readonly meta: FileMeta | 'torn';
}

export interface GuardOptions {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
  /** Last lines that rclone wrote. */
  readonly tail: (lines: number) => Promise<readonly string[]>;
  /** Ends rclone, so that the share is mounted anew. */
  readonly restart: () => void;
}

export interface Guard {
  /** Called with every look at the open files. */
  tend(open: readonly DirtyOpenFile[]): Promise<void>;
  /** Called when the remote has just answered. */
  remoteAnswered(): void;
}

/**
 * Watches over one kind of file that rclone itself loses: changed in place, in the cache only in part, and closed while the
 * remote is away. Fetching the missing part then fails after a while, the writer has long been told that all is well, and the
 * file stays open inside rclone, in no queue. The next program that opens it makes rclone delete its content.
 * So a second name keeps the content as long as it may be needed, and once the remote answers rclone is started anew, which
 * mends it: dirty files in the cache go up then.
 */
export function createGuard(options: GuardOptions): Guard {
  const guarded = new Map<string, bigint>();
  const stuck = new Set<string>();
  let logReadAtMs = 0;
  const drop = async (path: string): Promise<void> => {
    guarded.delete(path);
    stuck.delete(path);
    await rm(join(options.cacheDir, GUARD, path), { force: true });
  };
  return {
    tend: async (open) => {
      for (const file of open) if (!guarded.has(file.path)) await begin(file, guarded, options);
      if (guarded.size === 0) return;
      if (options.clock.monotonic() - logReadAtMs >= READ_LOG_EVERY_MS) {
        logReadAtMs = options.clock.monotonic();
        const lines = await options.tail(LOG_LINES);
        for (const path of guarded.keys()) if (isStuck(lines, path)) stuck.add(path);
      }
      for (const [path, inode] of guarded) await check({ path, inode, wasStuck: stuck.has(path) }, options, drop);
    },
    remoteAnswered: () => {
      if (stuck.size === 0) return;
      options.log.warn({ paths: [...stuck].slice(0, 5), files: stuck.size }, 'files that rclone cannot finish are taken up again by a new start');
      stuck.clear();
      options.restart();
    },
  };
}

async function begin({ path, meta }: DirtyOpenFile, guarded: Map<string, bigint>, { cacheDir, trees }: GuardOptions): Promise<void> {
  if (meta === 'torn' || meta.Fingerprint === '') return;
  const content = await dataFile(join(trees.data, path));
  if (!content || covers(meta.Rs, content.bytes)) return;
  const kept = join(cacheDir, GUARD, path);
  // Tried again at the next look when the disk has no room for it.
  await mkdir(dirname(kept), { recursive: true, mode: 0o700 }).catch(() => undefined);
  await rm(kept, { force: true });
  await link(join(trees.data, path), kept).catch(() => undefined);
  const found = await stat(kept, { bigint: true }).catch(() => undefined);
  if (found) guarded.set(path, found.ino);
}

interface Guarded { readonly path: string; readonly inode: bigint; readonly wasStuck: boolean }

async function check({ path, inode, wasStuck }: Guarded, options: GuardOptions, drop: (path: string) => Promise<void>): Promise<void> {
  const found = await stat(join(options.trees.data, path), { bigint: true }).catch(() => undefined);
  if (found?.ino === inode) {
    const meta = await readMeta(join(options.trees.meta, path));
    if (meta !== 'torn' && meta?.Dirty === false) await drop(path);
    return;
  }
  if (wasStuck || isStuck(await options.tail(LOG_LINES), path)) await keep(path, options);
  await drop(path);
}

/** `photos/a.raw(0xc00028ff40): RWFileHandle.Release error: vfs cache: failed to download missing parts of cache file` */
function isStuck(lines: readonly string[], path: string): boolean {
  return lines.some((line) => {
    const isEnd = line.includes('failed to download missing parts') || line.includes('didn\'t Close file');
    const named = /(?:ERROR|INFO)\s*: (.+?)(?:\(0x[0-9a-f]+\))?: /.exec(line)?.[1];
    return isEnd && named !== undefined && (path === named || path.endsWith(`/${named}`));
  });
}

async function keep(path: string, { cacheDir, clock, log }: GuardOptions): Promise<void> {
  const kept = join(cacheDir, RECOVERED, new Date(clock.now()).toISOString().replaceAll(/[:.]/g, '-'), path);
  await mkdir(dirname(kept), { recursive: true, mode: 0o700 });
  await rename(join(cacheDir, GUARD, path), kept);
  log.error({ path, kept }, 'rclone gave up a changed file; its changes are kept aside, what was never fetched reads as zeros');
}

/** At the start of a new rclone: second names of content that is still in the cache go, the rest is kept for a person to look at. */
export async function clearGuards(cacheDir: string, trees: CacheTrees, at: { readonly clock: Clock; readonly log: Logger }): Promise<void> {
  for await (const path of filesBelow(join(cacheDir, GUARD))) {
    const found = await stat(join(cacheDir, GUARD, path));
    if (found.nlink > 1) continue;
    await keep(path, { cacheDir, trees, ...at, tail: () => Promise.resolve([]), restart: () => undefined });
  }
  await rm(join(cacheDir, GUARD), { recursive: true, force: true });
}
