/**
 * Watches the folders of third-party plugins for edited, added and removed files at any depth. Discovery
 * then compares hashes, so a needless event changes nothing.
 */
import { lstatSync } from 'node:fs';
import path from 'node:path';
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
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: () => void;
}

/**
 * A plugin's packages change together with its package.json; watching each of their files would be too
 * expensive.
 */
const UNWATCHED = new Set(['node_modules', '.git', PACKAGES]);
const DEEPEST = 8;

/**
 * Files of other users are never loaded, and a symlink of theirs could lead the watcher into a mount that
 * hangs.
 */
function isForeign(file: string): boolean {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats !== undefined && !isTrustedUser(stats.uid);
}

/** Resolves once changes are noticed. */
export async function watchPlugins({
  dirs,
  debounceMs = 500,
  clock,
  log,
  onChange,
}: PluginWatchOptions): Promise<Release> {
  let isClosed = false;
  let cancel: () => void = () => undefined;
  const { watch } = await import('chokidar');
  const watcher = watch([...dirs], {
    ignoreInitial: true,
    depth: DEEPEST,
    ignored: (file) =>
      dirs.some((dir) =>
        path
          .relative(dir, file)
          .split(path.sep)
          .some((part) => UNWATCHED.has(part)),
      ) || isForeign(file),
  });
  watcher.on('all', () => {
    cancel();
    if (!isClosed) cancel = clock.after(debounceMs, onChange);
  });
  watcher.on('error', (err) => log.warn({ err }, 'plugin folders cannot be watched'));
  await new Promise<void>((resolve) => {
    watcher.once('ready', resolve);
  });
  return async () => {
    isClosed = true;
    cancel();
    await watcher.close();
  };
}
