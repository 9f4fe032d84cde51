import { lstat, rm } from 'node:fs/promises';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { at, isGiven } from '../places.ts';
import type { Upstream } from '../upstream.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { formatPath } from '../requests/path.ts';
import { statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { wantedTime } from '../requests/times.ts';
import { undo } from './undo.ts';

/** File times have whole seconds. */
const SLACK_MS = 1_000;
const TRY_AGAIN_MS = 15_000;
const MAX_TRIES = 40;

export interface ClearUpTools {
  readonly journal: Journal;
  readonly spool: () => string;
  readonly log: (sentence: string) => void;
}

/** Finishes or undoes interrupted uploads as soon as their share is available. */
export class ClearUp {
  readonly #tools: ClearUpTools;
  readonly #pending = new Map<string, LeftUpload>();

  constructor(tools: ClearUpTools) {
    this.#tools = tools;
  }

  /** Waits for its share. */
  add(upload: LeftUpload): void {
    this.#pending.set(upload.id, upload);
  }

  /**
   * For a caller that already has the lock of the path, so that no other client interferes. Never rejects.
   */
  async now(upstream: Upstream, upload: LeftUpload): Promise<void> {
    this.add(upload);
    await this.#try(upstream, upload);
    if (this.#pending.has(upload.id)) void this.#settle(upstream, upload);
  }

  /** Called when the share is available. */
  run(upstream: Upstream): void {
    for (const upload of this.#pending.values())
      if (upload.share === upstream.name) void this.#settle(upstream, upload);
  }

  /** The file now at this path is complete, so older entries for it are dropped. */
  async forget(share: string, parts: readonly string[]): Promise<void> {
    const path = parts.join('/');
    for (const upload of this.#pending.values())
      if (upload.share === share && upload.parts.join('/') === path) await this.#end(upload);
  }

  async #settle(upstream: Upstream, upload: LeftUpload): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES && upstream.attached; tries += 1) {
      const done = await upstream.alone(formatPath(upload));
      await this.#try(upstream, upload).finally(done);
      if (!this.#pending.has(upload.id)) return;
      await clock.sleep(TRY_AGAIN_MS);
    }
  }

  async #try(upstream: Upstream, upload: LeftUpload): Promise<void> {
    if (!this.#pending.has(upload.id)) return;
    // Tried again.
    const isDone = await this.#mend(upstream, formatPath(upload), upload).catch(() => false);
    if (isDone) await this.#end(upload);
  }

  async #end(upload: LeftUpload): Promise<void> {
    this.#pending.delete(upload.id);
    await this.#tools.journal.end(upload);
    if (upload.body !== undefined && isGiven(upload.body)) await rm(at(upload.body), { force: true });
  }

  /** True when nothing is left to do. */
  async #mend(upstream: Upstream, path: string, upload: LeftUpload): Promise<boolean> {
    const found = await statOf(upstream, upload.parts, upload.headers['host'] ?? 'localhost');
    if (!found || !isTornBy(upload, found)) return true;
    if (upload.kind !== 'whole' && this.#tools.journal.isOfFormerBoot(upload)) {
      this.#tools.log(
        `upload of ${path} may not have come to its end before this machine started anew: look at it`,
      );
      return true;
    }
    this.#tools.log(
      `upload of ${path} did not come to its end: ` +
        `${upload.kind === 'whole' ? 'its content is put in place' : 'it is taken back'}`,
    );
    if (upload.kind === 'whole') return this.#complete(upstream, path, upload);
    return undo(upload, path, (call) => upstream.ask(call, { isRepeatable: true }));
  }

  async #complete(upstream: Upstream, path: string, upload: LeftUpload): Promise<boolean> {
    const file = upload.body ?? '';
    // It may be there for a later proxy.
    if (!isGiven(file)) return false;
    // Not what a link leads to: there is nothing that a proxy has received.
    const size = await lstat(at(file)).then(
      (one) => (one.isFile() ? one.size : undefined),
      (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? undefined : null),
    );
    if (size === undefined) return true;
    // It may be there: a later proxy is let in.
    if (size === null) return false;
    // What a power cut has left of it. The file is held back by the write layer, which a shorter one would end.
    if (upload.size !== undefined && size !== upload.size) return true;
    const { journal } = this.#tools;
    const commit = new Commit({
      upstream,
      parts: upload.parts,
      path,
      headers: upload.headers,
      body: { file, size },
      spool: this.#tools.spool(),
      journal,
      noted: upload,
    });
    return (await commit.run()) === undefined;
  }
}

/**
 * Whether the upload was the last to write the existing file: a file that somebody has written since is
 * left alone. Backends give half a file, too, the time that its client wants: others may have put a file of that time
 * there, but not so short a one.
 */
export function isTornBy(
  { begunMs, seenMs, headers, passedBytes = -1 }: LeftUpload,
  { isFolder, modifiedMs, bytes }: Pick<Found, 'isFolder' | 'modifiedMs' | 'bytes'>,
): boolean {
  const isOfThen = modifiedMs >= begunMs - SLACK_MS && modifiedMs <= seenMs + SLACK_MS;
  const isOfWanted = modifiedMs === Number(wantedTime(headers)) * 1_000 && bytes <= passedBytes;
  return !isFolder && (isOfThen || isOfWanted);
}
