/**
 * Folders of a mounted share as users see them. A helper process with a deadline lists what the remote has; what
 * waits comes from the mount's own queue, so that it can be told anew without asking the remote.
 */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { LiveShare, Mount, PluginContext, QueuedUpload, UnsavedFile } from 'mountkeeper';
import type { Listed, ListRequest } from './list-process.ts';
import { withUnsaved } from './merge.ts';
import type { Entries, ShownFile } from './merge.ts';

const HELPER = fileURLToPath(new URL('./list-process.js', import.meta.url));
/** An admin may have given a folder in the share to somebody. */
const READS_ALL = ['dac_read_search'];
const LONGEST_MS = 15_000;
const QUEUE_MS = 5_000;
const MOST_OUTPUT_BYTES = 4 * 1024 * 1024;
/** While files come and go, the remote is asked once in this time, however many pages show the folder. */
const FRESH_MS = 10_000;
const MOST_KEPT = 20;

/** Thrown with words for the log; the page has its own. */
export class NotMounted extends Error {}

export interface ShownFolder extends Entries<ShownFile> {
  /** Why the remote could not be asked again: what it has is as old as the last listing. */
  readonly failed?: string;
}

interface Kept {
  readonly listed: Listed;
  readonly at: number;
  /** Files of the folder that have waited since. */
  readonly waiting: Set<string>;
  /** Changes of the whole share that have waited since, at most: removals are among them, too. */
  mostWaiting: number;
}

/** What is known without asking the remote. */
interface Now {
  readonly at: number;
  readonly queued: readonly UnsavedFile[];
  readonly waiting: number;
}

interface Look {
  readonly key: string;
  readonly request: ListRequest;
  readonly now: Now;
}

function liveShare(ctx: PluginContext, share: string): LiveShare | undefined {
  return ctx
    .use('shares')
    .list()
    .find(({ spec }) => spec.share.name === share);
}

/** Something that waited does so no more: the remote has it, or it is gone. */
function isOutdated({ waiting, mostWaiting, at }: Kept, now: Now): boolean {
  const names = new Set(now.queued.map(({ name }) => name));
  return now.at - at > FRESH_MS || now.waiting < mostWaiting || [...waiting].some((name) => !names.has(name));
}

/** Of all readers. */
export class FolderLists {
  readonly #ctx: PluginContext;
  readonly #kept = new Map<string, Kept>();
  readonly #asking = new Map<string, Promise<Kept>>();

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
  }

  /** As the remote has it now. Rejects with a plain sentence, or NotMounted. */
  async open(share: string, folder: string): Promise<ShownFolder> {
    const look = await this.#look(share, folder);
    return shown(await this.#ask(look), look.now);
  }

  /**
   * The same for who has it open: the remote is asked again where something has arrived there, or its listing is old.
   * Where that fails, its former listing stands.
   */
  async again(share: string, folder: string): Promise<ShownFolder> {
    const look = await this.#look(share, folder);
    const { now } = look;
    const kept = this.#kept.get(look.key);
    if (!kept) return shown(await this.#ask(look), now);
    if (!isOutdated(kept, now)) {
      for (const { name } of now.queued) kept.waiting.add(name);
      kept.mostWaiting = Math.max(kept.mostWaiting, now.waiting);
      return shown(kept, now);
    }
    try {
      return shown(await this.#ask(look), now);
    } catch (error) {
      return { ...shown(kept, now), failed: error instanceof Error ? error.message : String(error) };
    }
  }

  async #look(share: string, folder: string): Promise<Look> {
    const live = liveShare(this.#ctx, share);
    const access = live?.mount?.cacheAccess?.();
    if (!access) throw new NotMounted('the share is not mounted now');
    const at = this.#ctx.use('clock').now();
    const queued = filesIn(folder, await queueOf(this.#ctx, live?.mount), at);
    const now = { at, queued, waiting: live?.figures?.stats.dirtyFiles ?? 0 };
    return { key: `${share}\0${folder}`, request: { access, folder }, now };
  }

  /** Who asks meanwhile has the same answer, which counts as old as its question. */
  #ask(look: Look): Promise<Kept> {
    const { key } = look;
    const asking = this.#asking.get(key) ?? this.#keep(look).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  async #keep({ key, request, now }: Look): Promise<Kept> {
    const listed = await this.#list(request);
    const names = now.queued.map(({ name }) => name);
    const kept = { listed, at: now.at, waiting: new Set(names), mostWaiting: now.waiting };
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

function shown({ listed }: Kept, { queued }: Now): ShownFolder {
  return withUnsaved(listed, listed.unsaved ?? queued);
}

/** Empty where nobody can tell. */
async function queueOf(ctx: PluginContext, mount: Mount | undefined): Promise<readonly QueuedUpload[]> {
  const asked = mount?.uploadQueue?.(ctx.use('clock').deadline(QUEUE_MS));
  // Without it the badges say less, and nothing that is wrong about the remote.
  return (await asked?.catch(() => undefined)) ?? [];
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

function stateOf({ isUploading, failures }: QueuedUpload): UnsavedFile['state'] {
  if (isUploading) return 'uploading';
  return failures > 0 ? 'failed' : 'waiting';
}

/**
 * Another text whenever an open folder of the share may have to be drawn anew. While nothing waits, by the figures
 * that the daemon has anyway.
 */
export async function changesOf(ctx: PluginContext, share: string): Promise<string> {
  const { mount, figures } = liveShare(ctx, share) ?? {};
  if (!mount) return '';
  const { dirtyFiles = 0, uploadedBytes = 0 } = figures?.stats ?? {};
  const hash = createHash('sha256').update(`${dirtyFiles} ${uploadedBytes}`);
  if (dirtyFiles > 0)
    for (const file of await queueOf(ctx, mount))
      hash.update(`\n${file.path}\0${file.bytes} ${file.changedAt ?? ''} ${stateOf(file)}`);
  return hash.digest('hex').slice(0, 16);
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
