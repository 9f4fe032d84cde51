/**
 * Folders of a mounted share as users see them. A helper process with a deadline lists what the remote has; what
 * waits comes from the mount's own queue, so that it can be told anew without asking the remote.
 */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { CacheAccess, LiveShare, PluginContext, QueuedUpload, UnsavedFile } from 'mountkeeper';
import type { Listed, ListRequest } from './list-process.ts';
import { withUnsaved } from './merge.ts';
import type { Entries, ShownFile } from './merge.ts';
import { FRESH_MS } from './fills.ts';
import { stateOf } from './waiting.ts';
import type { Waiting } from './waiting.ts';

const HELPER = fileURLToPath(new URL('./list-process.js', import.meta.url));
/** An admin may have given a folder in the share to somebody. */
const READS_ALL = ['dac_read_search'];
const LONGEST_MS = 15_000;
const MOST_OUTPUT_BYTES = 4 * 1024 * 1024;
const MOST_KEPT = 20;

/** Thrown with words for the log; the page has its own. */
export class NotMounted extends Error {}

export interface ShownFolder extends Entries<ShownFile> {
  /** Why the remote could not be asked again: what it has is as old as the last listing. */
  readonly failed?: string;
}

interface Kept {
  readonly listed: Listed;
  /** When it was asked for (monotonic). */
  readonly at: number;
  /** Changes of the whole share that waited then. */
  readonly dirtyFiles: number;
  /** Of the share's cache and folders (`Fills`). */
  readonly version: string;
  /** Files of the folder that waited then, or have since. */
  readonly waiting: Set<string>;
}

/** What is known without asking the remote. */
interface Now {
  /** Monotonic. */
  readonly at: number;
  readonly queued: readonly UnsavedFile[];
  readonly dirtyFiles: number;
  readonly version: string;
}

interface Look {
  readonly key: string;
  readonly request: ListRequest;
  readonly now: Now;
}

/**
 * At once where something of the folder waits no more: the remote has it, or it is gone. What else changes, such as
 * what has been removed or is in other folders, when the listing is old.
 */
function isOutdated(kept: Kept, now: Now): boolean {
  if (kept.version !== now.version || now.at - kept.at > FRESH_MS) return true;
  if (kept.listed.unsaved) return hasOthersWaiting(kept.listed.unsaved, kept, now);
  const names = new Set(now.queued.map(({ name }) => name));
  return [...kept.waiting].some((name) => !names.has(name));
}

/** Of a mount without a queue, of which the listing alone says what waits in the folder. */
function hasOthersWaiting(unsaved: readonly UnsavedFile[], kept: Kept, now: Now): boolean {
  return now.dirtyFiles > kept.dirtyFiles || (unsaved.length > 0 && now.dirtyFiles < kept.dirtyFiles);
}

/** Of all readers. */
export class FolderLists {
  readonly #ctx: PluginContext;
  readonly #waiting: Waiting;
  readonly #kept = new Map<string, Kept>();
  readonly #asking = new Map<string, Promise<Kept>>();

  constructor(ctx: PluginContext, waiting: Waiting) {
    this.#ctx = ctx;
    this.#waiting = waiting;
  }

  /** As the remote has it now. Rejects with a plain sentence, or NotMounted. */
  async open(share: string, folder: string): Promise<ShownFolder> {
    const look = await this.#look(share, folder, (live) => this.#waiting.read(live));
    return shown(await this.#ask(look), look.now);
  }

  /**
   * The same for who has it open: the remote is asked again where something has arrived there, or its listing is old.
   * Where that fails, its former listing stands.
   */
  async again(share: string, folder: string): Promise<ShownFolder> {
    const look = await this.#look(share, folder, (live) => this.#waiting.latest(live));
    const { now } = look;
    const kept = this.#kept.get(look.key);
    if (kept && !isOutdated(kept, now)) return shown(kept, now);
    try {
      return shown(await this.#ask(look), now);
    } catch (error) {
      if (!kept) throw error;
      return { ...shown(kept, now), failed: error instanceof Error ? error.message : String(error) };
    }
  }

  async #look(
    share: string,
    folder: string,
    queueOf: (live: LiveShare) => Promise<readonly QueuedUpload[]>,
  ): Promise<Look> {
    const live = this.#ctx.use('shares').get(share);
    const mount = live?.mount;
    const access = mount?.cacheAccess?.();
    if (!live || !mount || !access) throw new NotMounted('the share is not mounted now');
    const clock = this.#ctx.use('clock');
    const dirtyFiles = live.figures?.stats.dirtyFiles ?? 0;
    const queued = filesIn(folder, await queueOf(live), clock.now());
    const version = this.#waiting.fills.version(mount, live);
    const now = { at: clock.monotonic(), queued, dirtyFiles, version };
    return { key: keyOf(share, access, folder), request: { access, folder }, now };
  }

  /**
   * Who asks meanwhile has the same answer, which counts as old as its question: where more is known by then, the
   * remote is asked once more.
   */
  async #ask(look: Look): Promise<Kept> {
    const { key, now } = look;
    const running = this.#asking.get(key);
    if (!running) return this.#begin(look);
    const kept = await running;
    // Another one has begun after this look.
    return isOutdated(kept, now) ? (this.#asking.get(key) ?? this.#begin(look)) : kept;
  }

  #begin(look: Look): Promise<Kept> {
    const asking = this.#keep(look).finally(() => this.#asking.delete(look.key));
    this.#asking.set(look.key, asking);
    return asking;
  }

  async #keep({ key, request, now }: Look): Promise<Kept> {
    const listed = await this.#list(request);
    const waiting = new Set(now.queued.map(({ name }) => name));
    const { at, dirtyFiles, version } = now;
    const kept = { listed, at, dirtyFiles, version, waiting };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    for (const oldest of this.#kept.keys()) if (this.#kept.size > MOST_KEPT) this.#kept.delete(oldest);
    return kept;
  }

  async #list(request: ListRequest): Promise<Listed> {
    // The request contains credentials, so it is passed through a pipe, never on the command line.
    const { code, stdout, stderr } = await this.#ctx.use('processes').run({
      command: process.execPath,
      args: [HELPER],
      capabilities: READS_ALL,
      input: JSON.stringify(request),
      timeoutMs: LONGEST_MS,
      signal: this.#ctx.signal,
      maxOutputBytes: MOST_OUTPUT_BYTES,
    });
    if (code !== 0) throw new Error(stderr.trim().slice(-500) || 'the folder could not be listed');
    return JSON.parse(stdout) as Listed;
  }
}

/** What was kept of another path or NAS, where the share led before, is not the folder of this one. */
function keyOf(share: string, access: CacheAccess, folder: string): string {
  const remote = createHash('sha256').update(JSON.stringify(access)).digest('hex');
  return [share, remote, folder].join('\0');
}

function shown({ listed, waiting }: Kept, { queued }: Now): ShownFolder {
  for (const { name } of queued) waiting.add(name);
  return withUnsaved(listed, listed.unsaved ?? queued);
}

function filesIn(folder: string, queue: readonly QueuedUpload[], now: number): readonly UnsavedFile[] {
  const start = folder === '' ? '' : `${folder}/`;
  return queue
    .filter(({ path }) => path.startsWith(start) && !path.slice(start.length).includes('/'))
    .map((file) => ({
      name: file.path.slice(start.length),
      bytes: file.bytes,
      modifiedMs: file.changedAt ?? now,
      state: stateOf(file),
    }));
}

/** A normalised path below the share; undefined for an invalid one. */
export function folderOf(given: string | undefined): string | undefined {
  const path = given ?? '';
  if (path.includes('\0') || path.length > 4_096 || path.split('/').includes('..')) return undefined;
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
