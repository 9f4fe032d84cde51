/**
 * Watches the folders of third-party plugins for edited, added and removed files at any depth. Discovery
 * then compares hashes, so a needless event changes nothing.
 */
import { lstatSync } from 'node:fs';
import type { Stats } from 'node:fs';
import path from 'node:path';
import type { FSWatcher } from 'chokidar';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { isTrustedUser } from '../../platform/files/ownership.ts';
import { PACKAGES } from './installed.ts';

export interface PluginWatchOptions {
  /** As in `[plugins] dirs`, and that of installed plugins. */
  readonly dirs: readonly string[];
  /**
   * Quiet time before a change is reported, so that a copy in progress is not read half-way, in
   * milliseconds; default 500.
   */
  readonly debounceMs?: number;
  /**
   * When the folders were read, in milliseconds since the epoch: what has changed since is reported, too. Without it
   * only what changes from now on.
   */
  readonly readAtMs?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: () => void;
}

const UNWATCHED = new Set(['.git', PACKAGES]);
/**
 * Watching each file of a plugin's packages would be too expensive. That they come and change is told by their folder
 * and by the list that npm writes into it last: `npm ci` touches nothing beside them.
 */
const MODULES = 'node_modules';
const MODULES_LIST = '.package-lock.json';
const DEEPEST = 8;
/** The kernel notes changes by a clock that stands still for that long. */
const CLOCK_STEP_MS = 10;
/** Quiet times after which a change is reported though there is no quiet: somebody may write without end. */
const MOST_WAITS = 10;

/** `parts`: of a path below a folder of plugins. */
function isUnwatched(parts: readonly string[]): boolean {
  const at = parts.indexOf(MODULES);
  const below = at === -1 ? [] : parts.slice(at + 1);
  return (
    below.length > 1 || (below[0] ?? MODULES_LIST) !== MODULES_LIST || parts.some((one) => UNWATCHED.has(one))
  );
}

/**
 * Files of other users are never loaded, and a symlink of theirs could lead the watcher into a mount that
 * hangs.
 */
function isForeign(file: string): boolean {
  const stats = statsOf(file);
  return stats !== undefined && !isTrustedUser(stats.uid);
}

/** Undefined for what is not there, or below what is no folder any more. */
function statsOf(file: string): Stats | undefined {
  try {
    return lstatSync(file, { throwIfNoEntry: false });
  } catch {
    // It went while it was looked at: whatever took it away is told, too.
    return undefined;
  }
}

/** Also what is gone. */
function isChangedSince(file: string, ms: number): boolean {
  const stats = statsOf(file);
  return stats === undefined || stats.ctimeMs >= ms - CLOCK_STEP_MS;
}

/**
 * What somebody has moved to this name. The watches stay with the folder that was there before, and where the new one
 * has the same files, nothing is said of it.
 */
function isMovedFolder(event: string, file: string): boolean {
  const stats = event === 'rename' ? statsOf(file) : undefined;
  return stats !== undefined && (stats.isDirectory() || stats.isSymbolicLink());
}

/** Resolves once changes are noticed. */
export async function watchPlugins({
  dirs,
  debounceMs = 500,
  readAtMs,
  clock,
  log,
  onChange,
}: PluginWatchOptions): Promise<Release> {
  let isClosed = false;
  let cancel: () => void = () => undefined;
  let firstMs: number | undefined;
  let isOutdated = false;
  let working: Promise<void> = Promise.resolve();
  const { watch } = await import('chokidar');
  const ignored = (file: string): boolean =>
    dirs.some((dir) => isUnwatched(path.relative(dir, file).split(path.sep))) || isForeign(file);
  /** Tells of all that is there, too, if it is younger than that. */
  const open = async (fromMs?: number): Promise<FSWatcher> => {
    let isReady = false;
    const opened = watch([...dirs], { ignoreInitial: fromMs === undefined, depth: DEEPEST, ignored });
    opened.on('all', (_, file) => {
      if (isReady || fromMs === undefined || isChangedSince(file, fromMs)) noticed();
    });
    opened.on('raw', (event, name: string | null, at) => {
      const file = path.join((at as { watchedPath: string }).watchedPath, name ?? '');
      if (!isMovedFolder(event, file) || ignored(file)) return;
      isOutdated = true;
      noticed();
    });
    opened.on('error', (err) => log.warn({ err }, 'plugin folders cannot be watched'));
    await new Promise<void>((resolve) => {
      opened.once('ready', resolve);
    });
    isReady = true;
    // What was moved away or there after a folder was listed, and before it was watched, is told by nothing else.
    if (fromMs !== undefined && dirs.some((dir) => statsOf(dir) && isChangedSince(dir, fromMs))) noticed();
    return opened;
  };
  /** Watches anew first: whoever is told looks at what is watched. */
  const report = async (): Promise<void> => {
    firstMs = undefined;
    if (isOutdated && !isClosed) {
      isOutdated = false;
      await watcher.close();
      watcher = await open();
    }
    if (!isClosed) onChange();
  };
  const noticed = (): void => {
    cancel();
    if (isClosed) return;
    firstMs ??= clock.monotonic();
    const mostMs = firstMs + MOST_WAITS * debounceMs - clock.monotonic();
    cancel = clock.after(Math.max(0, Math.min(debounceMs, mostMs)), () => {
      working = working
        .then(report)
        .catch((err: unknown) => log.warn({ err }, 'plugin folders cannot be watched'));
    });
  };
  let watcher = await open(readAtMs);
  return async () => {
    isClosed = true;
    cancel();
    await working;
    await watcher.close();
  };
}
