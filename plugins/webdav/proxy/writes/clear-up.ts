import { lstat, rm } from 'node:fs/promises';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { at, isGiven } from '../places.ts';
import type { Upstream } from '../upstream.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { formatPath } from '../requests/path.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { beginsAs, firstOfFile } from './first-bytes.ts';
import { isAsItWas, isTornBy, isWholeBy } from './torn.ts';
import { undo } from './undo.ts';

const TRY_AGAIN_MS = 15_000;
const MAX_TRIES = 40;
/** What would be lost is tried for as long as its share is there: a disk may be full for days. */
const SELDOM_MS = 300_000;

export interface ClearUpTools {
  readonly journal: Journal;
  readonly spool: () => string;
  readonly log: (sentence: string) => void;
}

/** Finishes or undoes interrupted uploads as soon as their share is available. */
export class ClearUp {
  readonly #tools: ClearUpTools;
  readonly #pending = new Map<string, LeftUpload>();
  readonly #settling = new Set<string>();

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

  async #settle(upstream: Upstream, { id }: LeftUpload): Promise<void> {
    if (this.#settling.has(id)) return;
    this.#settling.add(id);
    for (let tries = 1; upstream.attached; tries += 1) {
      const upload = this.#pending.get(id);
      if (!upload || (tries > MAX_TRIES && upload.takenAwayIn === undefined)) break;
      const done = await upstream.alone(formatPath(upload));
      await this.#try(upstream, upload).finally(done);
      if (this.#pending.has(id)) await upstream.changed(tries < MAX_TRIES ? TRY_AGAIN_MS : SELDOM_MS);
    }
    this.#settling.delete(id);
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
    const host = hostOf(headers);
    const isOfFormerBoot = this.#tools.journal.isOfFormerBoot(upload);
    // Beside a mount a listing may be a second old, and have what the last write has taken away.
    if (upstream.attached?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
    const found = await statOf(upstream, parts, host);
    if (!found) return this.#putBack(upstream, upload);
    if (!isTornBy(upload, found) || isWholeBy(upload, found, isOfFormerBoot)) return true;
    const isOf = (first: Buffer): Promise<boolean> =>
      beginsAs(
        first,
        { path: formatPath(upload), host, bytes: found.bytes },
        { ask: (call) => upstream.ask(call), mayBeZeros: isOfFormerBoot },
      );
    if (kind === 'whole') return this.#complete(upstream, upload, isOf);
    return this.#takeBack(upstream, upload, { isOf, found });
  }

  /** Only into the place whose file was taken away, and not where its folder has gone since. */
  async #putBack(upstream: Upstream, upload: LeftUpload): Promise<boolean> {
    const { takenAwayIn, parts, headers } = upload;
    if (takenAwayIn === undefined) return true;
    if (upstream.attached?.share.place !== takenAwayIn) return false;
    const folder = parts.slice(0, -1);
    if (folder.length > 0 && !(await statOf(upstream, folder, hostOf(headers)))) {
      this.#tools.log(`upload of ${formatPath(upload)} did not come to its end, and its folder has gone`);
      return true;
    }
    return this.#complete(upstream, upload);
  }

  async #takeBack(
    upstream: Upstream,
    upload: LeftUpload,
    { isOf, found }: { readonly isOf: IsOf; readonly found: Found },
  ): Promise<boolean> {
    const { journal, log } = this.#tools;
    const path = formatPath(upload);
    if (upload.first === undefined || journal.isOfFormerBoot(upload)) {
      log(`upload of ${path} may not have come to its end, and nobody can tell: look at it`);
      return true;
    }
    if (isAsItWas(upload, found) || !(await isOf(Buffer.from(upload.first, 'base64')))) return true;
    log(`upload of ${path} did not come to its end: it is taken back`);
    return undo(upload, path, (call) => upstream.ask(call, { isRepeatable: true }));
  }

  /** Without `isOf` there must be nothing. */
  async #complete(upstream: Upstream, upload: LeftUpload, isOf?: IsOf): Promise<boolean> {
    const { journal, log } = this.#tools;
    const { parts, headers } = upload;
    const body = await bodyOf(upload);
    if (!body || (isOf && !(await isOf(body.first)))) return true;
    const path = formatPath(upload);
    const commit = new Commit({
      upstream,
      parts,
      path,
      headers,
      body,
      spool: this.#tools.spool(),
      journal,
      noted: upload,
      mustBeMissing: isOf === undefined,
    });
    if (await commit.run()) {
      const { seenMs } = upload;
      this.add(await journal.leave(upload, { seenMs, ...commit.takenAway }));
      return false;
    }
    log(`upload of ${path} had not come to its end: its content is in place now`);
    return true;
  }
}

/** Whether what is there is a beginning of what has these first bytes. */
type IsOf = (first: Buffer) => Promise<boolean>;

function hostOf(headers: LeftUpload['headers']): string {
  return headers['host'] ?? 'localhost';
}

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
