/**
 * Reports when the content of files has changed, however they were saved: in place, by renaming over them,
 * through a swapped symlink, or removed and written again. Folders are watched, because a watch on a file
 * ends with that file; slow polling of the files catches what folder watches miss (network folders, no
 * watches left).
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FSWatcher } from 'chokidar';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { symlinkChain } from './symlink-chain.ts';

/** More than any file that is watched holds. */
const MOST_BYTES = 16 * 1_048_576;

export interface WatchOptions {
  readonly paths: readonly string[];
  /** Quiet time before the files are read; default 500. */
  readonly debounceMs?: number;
  /** How often the files are polled without an event, in milliseconds; default 10,000. */
  readonly pollMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Whether the caller already knows this text. Any other text is reported, even if it is the last one seen
   * here: the caller may have written another one in between without an event. Absent: only texts that
   * differ from the last one seen are reported.
   */
  readonly isKnown?: (text: string) => boolean;
  readonly onChange: () => void;
}

const DEFAULT_DEBOUNCE_MS = 500;
const DEFAULT_POLL_MS = 10_000;
/**
 * A file that is empty or missing is probably being saved; after this many quiet periods it counts as
 * meant.
 */
const PATIENCE = 6;
/** For the first look at the folders. */
const READY_MS = 10_000;
const GONE = 'gone';
const EMPTY = createHash('sha256').digest('hex');

/** Resolves once changes are noticed. */
export async function watchFiles(options: WatchOptions): Promise<Release> {
  const { clock, log } = options;
  const known = new Map<string, Content>();
  for (const path of options.paths) known.set(path, await contentOf(path));
  const isNews = (path: string, now: Content): boolean =>
    now.hash !== known.get(path)?.hash || (now.text !== undefined && options.isKnown?.(now.text) === false);
  const debounceMs = options.debounceMs ?? DEFAULT_DEBOUNCE_MS;
  let isClosed = false;
  let cancelCheck: () => void = () => undefined;
  let working: Promise<void> = Promise.resolve();
  const schedule = (patience = PATIENCE): void => {
    cancelCheck();
    if (isClosed) return;
    cancelCheck = clock.after(debounceMs, () => {
      working = working
        .then(() => check(patience))
        .catch((err: unknown) => log.warn({ err }, 'watched files cannot be read'));
    });
  };
  const check = async (patience: number): Promise<void> => {
    const seen = new Map<string, Content>();
    for (const path of options.paths) seen.set(path, await contentOf(path));
    const changed = [...seen].filter(([path, content]) => isNews(path, content));
    if (isClosed) return;
    await folders.update(await foldersOf(options.paths));
    if (changed.length === 0) return;
    if (patience > 0 && changed.some(([, content]) => isUnfinished(content))) return schedule(patience - 1);
    for (const [path, content] of changed) known.set(path, { hash: content.hash });
    if (!isClosed) options.onChange();
  };
  const folders = await watchFolders(await foldersOf(options.paths), { clock, log }, () => schedule());
  const stopPolling = pollStats(options, () => schedule());
  // For what was saved between the first reading and the start of the watches.
  schedule();
  return async () => {
    isClosed = true;
    cancelCheck();
    stopPolling();
    await working;
    await folders.close();
  };
}

/** A file's content; without `text` where the file is missing. */
interface Content {
  readonly hash: string;
  readonly text?: string;
}

function isUnfinished({ hash }: Content): boolean {
  return hash === GONE || hash === EMPTY;
}

async function contentOf(path: string): Promise<Content> {
  try {
    const text = await readPlain(path);
    return { hash: createHash('sha256').update(text).digest('hex'), text: text.toString('utf8') };
  } catch {
    // Away, or not to be read: either is told as gone once it lasts.
    return { hash: GONE };
  }
}

/** Rejects for what is no plain file: a named pipe or a device would be waited for without end. */
async function readPlain(path: string): Promise<Buffer> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await handle.stat().then((stats) => (stats.isFile() ? stats : { size: Infinity }));
    if (size > MOST_BYTES) throw new Error(`${path} is no plain file of at most ${MOST_BYTES} bytes`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Folders to watch, each with the names in it that matter. */
type Folders = ReadonlyMap<string, ReadonlySet<string>>;

async function foldersOf(paths: readonly string[]): Promise<Folders> {
  const folders = new Map<string, Set<string>>();
  for (const path of paths) {
    for (const entry of await symlinkChain(path)) {
      const folder = dirname(entry);
      folders.set(folder, (folders.get(folder) ?? new Set<string>()).add(entry));
    }
  }
  return folders;
}

interface FolderWatch {
  update(folders: Folders): Promise<void>;
  close(): Promise<void>;
}

async function watchFolders(
  first: Folders,
  tools: Pick<WatchOptions, 'clock' | 'log'>,
  onEvent: () => void,
): Promise<FolderWatch> {
  let current = first;
  let watcher = await openWatcher(current, tools, onEvent);
  return {
    update: async (next) => {
      if (describe(next) === describe(current)) return;
      const former = watcher;
      current = next;
      watcher = await openWatcher(next, tools, onEvent);
      await former.close();
      // Something may have changed between the two watches.
      onEvent();
    },
    close: () => watcher.close(),
  };
}

function describe(folders: Folders): string {
  return [...folders]
    .map(([folder, entries]) => JSON.stringify([folder, ...entries]))
    .sort((a, b) => a.localeCompare(b))
    .join();
}

async function openWatcher(
  folders: Folders,
  { clock, log }: Pick<WatchOptions, 'clock' | 'log'>,
  onEvent: () => void,
): Promise<FSWatcher> {
  const { watch } = await import('chokidar');
  const entries = new Set([...folders.values()].flatMap((names) => [...names]));
  const watcher = watch([...folders.keys()], {
    depth: 0,
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (path) => !folders.has(path) && !entries.has(path),
  });
  watcher.on('all', onEvent);
  watcher.on('error', (err) =>
    log.warn({ err }, 'watching for changes failed; files are looked at now and then'),
  );
  // Whoever waits for it would notice no change any more: without watches, polling does.
  const isReady = await new Promise<boolean>((resolve) => {
    const cancel = clock.after(READY_MS, () => resolve(false));
    watcher.once('ready', () => {
      cancel();
      resolve(true);
    });
  });
  if (!isReady) log.warn('watching for changes has not begun in time; files are looked at now and then');
  return watcher;
}

/** Compares size, times and file numbers, following links. */
function pollStats(options: WatchOptions, onDifference: () => void): () => void {
  const { clock } = options;
  const pollMs = options.pollMs ?? DEFAULT_POLL_MS;
  let last: string | undefined;
  let isClosed = false;
  let cancel: () => void = () => undefined;
  const look = async (): Promise<void> => {
    const parts = await Promise.all(
      options.paths.map((path) =>
        stat(path).then(
          ({ ino, size, mtimeMs, ctimeMs }) => `${ino} ${size} ${mtimeMs} ${ctimeMs}`,
          () => GONE,
        ),
      ),
    );
    const now = parts.join('|');
    if (last !== undefined && now !== last) onDifference();
    last = now;
    if (!isClosed) cancel = clock.after(pollMs, () => void look());
  };
  void look();
  return () => {
    isClosed = true;
    cancel();
  };
}
