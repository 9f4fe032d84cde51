import { lstat, rm } from 'node:fs/promises';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { at, isGiven } from '../places.ts';
import type { KeptContent, ProxyShare } from '../state.ts';
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
/** What is put in its place sooner is nothing that people have to hear of. */
const KEPT_AFTER_MS = 60_000;

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
  /** Uploads of which was told that their content is kept. */
  readonly #told = new Set<string>();

  constructor(tools: ClearUpTools) {
    this.#tools = tools;
  }

  /** Of a former proxy. Waits for its share, unless nobody has come for it in a month. */
  async takeUp(upload: LeftUpload): Promise<void> {
    this.#pending.set(upload.id, upload);
    if (!this.#tools.journal.isTooOld(upload)) return;
    this.#tools.log(
      `upload of ${formatPath(upload)} did not come to its end in a month: its content is deleted`,
    );
    await this.#end(upload);
  }

  /**
   * For a caller that already has the lock of the path, so that no other client interferes. Never rejects.
   */
  async now(upstream: Upstream, upload: LeftUpload): Promise<void> {
    this.#pending.set(upload.id, upload);
    await this.#try(upstream, upload);
    if (this.#pending.has(upload.id)) void this.#settle(upstream, upload);
  }

  /** Content that has waited for a minute, the oldest first. */
  get kept(): readonly KeptContent[] {
    return [...this.#pending.values()].flatMap(({ kind, share, parts, body, begunMs }) =>
      kind === 'whole' && body !== undefined && clock.now() - begunMs > KEPT_AFTER_MS
        ? [{ share, path: parts.join('/'), file: body }]
        : [],
    );
  }

  /** Called when the share is available. */
  run(upstream: Upstream): void {
    for (const upload of this.#pending.values())
      if (upload.share === upstream.name) void this.#settle(upstream, upload);
  }

  /** Resolves with its release once nothing left is put at this path, and nothing is before that. */
  async alone(upstream: Upstream, parts: readonly string[]): Promise<() => void> {
    const hasLeft = [...this.#pending.values()].some(({ share }) => share === upstream.name);
    return hasLeft ? upstream.alone(formatPath({ share: upstream.name, parts })) : () => undefined;
  }

  /** The file now at this path is complete, so older entries for it are dropped. */
  async forget(upstream: Upstream, parts: readonly string[]): Promise<void> {
    for (const upload of this.#at(upstream, parts)) await this.#end(upload);
  }

  /** Users have deleted what is there, or have seen that there is nothing: no content comes back there by itself. */
  async removed(upstream: Upstream, parts: readonly string[]): Promise<void> {
    for (const upload of this.#at(upstream, parts)) if (upload.kind !== 'whole') await this.#end(upload);
    for (const upload of this.#at(upstream, parts, true)) {
      const { seenMs } = upload;
      const left = await this.#tools.journal.leave(upload, { seenMs, isTakenAway: false });
      this.#pending.set(upload.id, left);
    }
  }

  /** Uploads of the place that the share shows, to this path; `isBelow`: and below it. */
  #at(upstream: Upstream, parts: readonly string[], isBelow = false): readonly LeftUpload[] {
    const path = parts.join('/');
    return [...this.#pending.values()].filter((upload) => {
      const its = upload.parts.join('/');
      const isThere = its === path || (isBelow && its.startsWith(`${path}/`));
      return upload.share === upstream.name && isThere && isOfPlace(upload, upstream);
    });
  }

  async #settle(upstream: Upstream, { id }: LeftUpload): Promise<void> {
    if (this.#settling.has(id)) return;
    this.#settling.add(id);
    for (let tries = 1; upstream.attached; tries += 1) {
      const upload = this.#pending.get(id);
      if (!upload || (tries > MAX_TRIES && !this.#goesOn(upload))) break;
      const tried = await this.#tryAlone(upstream, upload);
      // What has changed since is tried at once.
      if (this.#pending.has(id) && upstream.attached?.share === tried)
        await upstream.changed(this.#told.has(id) ? SELDOM_MS : TRY_AGAIN_MS);
    }
    this.#settling.delete(id);
  }

  /** After many tries. */
  #goesOn(upload: LeftUpload): boolean {
    if (upload.kind !== 'whole') return false;
    this.#tell(upload);
    return true;
  }

  /** The share as it was told of when the upload was tried. */
  async #tryAlone(upstream: Upstream, upload: LeftUpload): Promise<ProxyShare | undefined> {
    const done = await upstream.alone(formatPath(upload));
    const tried = upstream.attached?.share;
    // As it is by now: it may have had to wait for who tried before.
    await this.#try(upstream, this.#pending.get(upload.id) ?? upload).finally(done);
    return tried;
  }

  async #try(upstream: Upstream, upload: LeftUpload): Promise<void> {
    // A share that takes no writes now may be another one afterwards.
    if (!this.#pending.has(upload.id) || upstream.isFrozen) return;
    // Tried again.
    const isDone = await this.#mend(upstream, upload).catch(() => false);
    if (isDone) await this.#end(upload);
  }

  /** Never rejects. */
  async #end(upload: LeftUpload): Promise<void> {
    this.#pending.delete(upload.id);
    this.#told.delete(upload.id);
    try {
      await this.#tools.journal.end(upload);
      if (upload.body !== undefined && isGiven(upload.body)) await rm(at(upload.body), { force: true });
    } catch (error) {
      // The next proxy does it once more, and finds that nothing is left to do.
      this.#tools.log(`note of the upload of ${formatPath(upload)} could not be removed: ${String(error)}`);
    }
  }

  /** Once. */
  #tell(upload: LeftUpload): void {
    if (this.#told.has(upload.id)) return;
    this.#told.add(upload.id);
    this.#tools.log(
      `upload of ${formatPath(upload)} did not come to its end, and its content cannot be put in its place now: ` +
        `it is kept for a month in ${String(upload.body)}`,
    );
  }

  /** True when nothing is left to do. */
  async #mend(upstream: Upstream, upload: LeftUpload): Promise<boolean> {
    if (upload.kind === 'whole' && this.#mustWait(upstream, upload)) return false;
    // Beside a mount a listing may be a second old, and have what the last write has taken away.
    if (upstream.attached?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
    const found = await this.#look(upstream, upload);
    if (!isOfPlace(upload, upstream)) return false;
    return found ? this.#mendFound(upstream, upload, found) : this.#putBack(upstream, upload);
  }

  async #mendFound(upstream: Upstream, upload: LeftUpload, found: Found): Promise<boolean> {
    const isTorn =
      isTornBy(upload, found) && !isWholeBy(upload, found, this.#tools.journal.isOfFormerBoot(upload));
    if (upload.kind !== 'whole') return isTorn ? this.#takeBack(upstream, upload, found) : true;
    if (isTorn) return this.#complete(upstream, upload, true);
    // As a lock makes it, or a write that has failed; or somebody has emptied it.
    const isEmptied = !found.isFolder && found.bytes === 0 && upload.size !== 0;
    return isEmptied ? this.#keep(upload) : true;
  }

  /** Where the share shows another place, and for what came later to the same path: what is there may be its own. */
  #mustWait(upstream: Upstream, upload: LeftUpload): boolean {
    if (!isOfPlace(upload, upstream)) return !this.#keep(upload);
    return this.#at(upstream, upload.parts).at(-1)?.id !== upload.id;
  }

  /** Until a proxy finds its note too old. */
  #keep(upload: LeftUpload): false {
    this.#tell(upload);
    return false;
  }

  #look(upstream: Upstream, { parts, headers }: LeftUpload): Promise<Found | undefined> {
    return statOf(upstream, parts, hostOf(headers));
  }

  /**
   * Only where the file was taken away by the write itself: where users may have removed it, or its folder, the content
   * is kept.
   */
  async #putBack(upstream: Upstream, upload: LeftUpload): Promise<boolean> {
    const { kind, isTakenAway, parts, headers } = upload;
    if (kind !== 'whole' || !(await bodyOf(upload))) return true;
    const folder = parts.slice(0, -1);
    const hasFolder = folder.length === 0 || (await statOf(upstream, folder, hostOf(headers))) !== undefined;
    // Of a former version nobody knows which place it was.
    const isKnown = isTakenAway === true && upload.place !== undefined;
    return isKnown && hasFolder ? this.#complete(upstream, upload, false) : this.#keep(upload);
  }

  async #takeBack(upstream: Upstream, upload: LeftUpload, found: Found): Promise<boolean> {
    const { journal, log } = this.#tools;
    const path = formatPath(upload);
    if (upload.first === undefined || journal.isOfFormerBoot(upload)) {
      log(`upload of ${path} may not have come to its end, and nobody can tell: look at it`);
      return true;
    }
    const first = Buffer.from(upload.first, 'base64');
    if (isAsItWas(upload, found) || !(await this.#beginsAs(upstream, upload, { found, first }))) return true;
    log(`upload of ${path} did not come to its end: it is taken back`);
    return undo(upload, path, (call) => upstream.ask(call, { isRepeatable: true }));
  }

  /** Whether what is there is a beginning of what has these first bytes. */
  #beginsAs(
    upstream: Upstream,
    upload: LeftUpload,
    { found: { bytes }, first }: { readonly found: Found; readonly first: Buffer },
  ): Promise<boolean> {
    return beginsAs(
      first,
      { path: formatPath(upload), host: hostOf(upload.headers), bytes },
      {
        ask: (call) => upstream.ask(call),
        mayBeZeros: this.#tools.journal.isOfFormerBoot(upload),
      },
    );
  }

  /** `isThere`: what is there is a beginning of it, by its time and length; otherwise there is nothing. */
  async #complete(upstream: Upstream, upload: LeftUpload, isThere: boolean): Promise<boolean> {
    const { journal, log } = this.#tools;
    const { parts, headers, id } = upload;
    const body = await bodyOf(upload);
    if (!body) return true;
    const isAsSeen = async (): Promise<boolean> => {
      const found = await this.#look(upstream, upload);
      if (!isThere || !found) return !isThere && !found;
      return isTornBy(upload, found) && this.#beginsAs(upstream, upload, { found, first: body.first });
    };
    if (isThere && !(await isAsSeen())) return true;
    const path = formatPath(upload);
    // Nobody begins without a note of that.
    const noted = await journal.resume(upload);
    this.#pending.set(id, noted);
    const commit = new Commit({
      upstream,
      parts,
      path,
      headers,
      body,
      spool: this.#tools.spool(),
      journal,
      noted,
      isAsSeen,
    });
    if (await commit.run()) {
      const { isTakenAway = false } = this.#pending.get(id) ?? upload;
      const left = commit.wasTouched
        ? { isTakenAway: commit.isTakenAway }
        : { seenMs: upload.seenMs, isTakenAway };
      this.#pending.set(id, await journal.leave(noted, left));
      return false;
    }
    log(`upload of ${path} had not come to its end: its content is in place now`);
    await this.forget(upstream, parts);
    return true;
  }
}

/** Whether the share shows the place of the upload. True for one of a former version, which did not note it. */
function isOfPlace({ place }: LeftUpload, upstream: Upstream): boolean {
  return place === undefined || upstream.place === place;
}

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
