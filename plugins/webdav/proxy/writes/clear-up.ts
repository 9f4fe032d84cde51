import { lstat, rm } from 'node:fs/promises';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { at, isGiven } from '../places.ts';
import type { Upstream } from '../upstream.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { formatPath } from '../requests/path.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import { beginsAs, firstOfFile } from './first-bytes.ts';
import { isAsItWas, isTornBy, isWholeBy } from './torn.ts';
import { undo } from './undo.ts';

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
    const isDone = await this.#mend(upstream, upload).catch(() => false);
    if (isDone) await this.#end(upload);
  }

  async #end(upload: LeftUpload): Promise<void> {
    this.#pending.delete(upload.id);
    await this.#tools.journal.end(upload);
    if (upload.body !== undefined && isGiven(upload.body)) await rm(at(upload.body), { force: true });
  }

  /** True when nothing is left to do. */
  async #mend(upstream: Upstream, upload: LeftUpload): Promise<boolean> {
    const { headers, kind, parts } = upload;
    const host = headers['host'] ?? 'localhost';
    const isOfFormerBoot = this.#tools.journal.isOfFormerBoot(upload);
    // Beside a mount a listing may be a second old, and have what the last write has taken away.
    if (upstream.attached?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
    const found = await statOf(upstream, parts, host);
    // A write that fails takes the file away where its disk is full: then both would be lost.
    if (!found) return kind !== 'whole' || this.#complete(upstream, upload, () => Promise.resolve(true));
    if (isAsItWas(upload, found) || !isTornBy(upload, found) || isWholeBy(upload, found, isOfFormerBoot))
      return true;
    const isOf = (first: Buffer): Promise<boolean> =>
      beginsAs(
        first,
        { path: formatPath(upload), host, bytes: found.bytes },
        { ask: (call) => upstream.ask(call), mayBeZeros: isOfFormerBoot },
      );
    return kind === 'whole' ? this.#complete(upstream, upload, isOf) : this.#takeBack(upstream, upload, isOf);
  }

  async #takeBack(upstream: Upstream, upload: LeftUpload, isOf: IsOf): Promise<boolean> {
    const { journal, log } = this.#tools;
    const path = formatPath(upload);
    if (upload.first === undefined || journal.isOfFormerBoot(upload)) {
      log(`upload of ${path} may not have come to its end, and nobody can tell: look at it`);
      return true;
    }
    if (!(await isOf(Buffer.from(upload.first, 'base64')))) return true;
    log(`upload of ${path} did not come to its end: it is taken back`);
    return undo(upload, path, (call) => upstream.ask(call, { isRepeatable: true }));
  }

  async #complete(upstream: Upstream, upload: LeftUpload, isOf: IsOf): Promise<boolean> {
    const body = await bodyOf(upload);
    if (!body || !(await isOf(body.first))) return true;
    const path = formatPath(upload);
    this.#tools.log(`upload of ${path} did not come to its end: its content is put in place`);
    const { journal } = this.#tools;
    const commit = new Commit({
      upstream,
      parts: upload.parts,
      path,
      headers: upload.headers,
      body,
      spool: this.#tools.spool(),
      journal,
      noted: upload,
    });
    return (await commit.run()) === undefined;
  }
}

/** Whether what is there is a beginning of what has these first bytes. */
type IsOf = (first: Buffer) => Promise<boolean>;

/** What was received of it; undefined when it is gone. Rejects where it may be there for a later proxy. */
async function bodyOf({
  body: file = '',
  size: whole,
}: LeftUpload): Promise<
  { readonly file: string; readonly size: number; readonly first: Buffer } | undefined
> {
  if (!isGiven(file)) throw new Error(`${file} is not for this process`);
  try {
    // Not what a link leads to: there is nothing that a proxy has received.
    const found = await lstat(at(file));
    const { size } = found;
    // What a power cut has left of it. The file is held back by the write layer, which a shorter one would end.
    if (!found.isFile() || size !== (whole ?? size)) return undefined;
    return { file, size, first: await firstOfFile(at(file)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
