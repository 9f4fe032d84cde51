/**
 * Watches the folders of third-party plugins, whatever is edited, added or removed in them, however deep.
 * Whether the content is another is for discovery to say: it goes by hashes, so an event too many changes
 * nothing.
 */
import { lstatSync } from 'node:fs';
import path from 'node:path';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { isTrustedUser } from '../../platform/files/ownership.ts';

export interface PluginWatchOptions {
  /** As in `[plugins] dirs`. */
  readonly dirs: readonly string[];
  /** Quiet time before a change is told, so that a copy in progress is not read half-way; default 500. */
  readonly debounceMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: () => void;
}

/**
 * Packages of plugins change together with their package.json; watching each of their files would cost too
 * much.
 */
const UNWATCHED = new Set(['node_modules', '.git']);
const DEEPEST = 8;

/** Nothing of other users is loaded, and a link of theirs could lead the watcher into a mount that hangs. */
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
