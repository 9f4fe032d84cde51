import { rm, stat } from 'node:fs/promises';
import { pause } from '../clock.ts';
import { Commit } from './commit.ts';
import type { Upstream } from '../upstream.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { formatPath } from '../requests/path.ts';
import { statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';

/** Times of files come in whole seconds. */
const SLACK_MS = 1_000;
const TRY_AGAIN_MS = 15_000;
const MAX_TRIES = 40;

export interface ClearUpTools {
  readonly journal: Journal;
  readonly spool: () => string;
  readonly log: (sentence: string) => void;
}

/** Brings to their end what uploads have left torn, as soon as their share is there. */
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

  /** For who has the path to himself already: no other client comes in between. Never rejects. */
  async now(gate: Upstream, upload: LeftUpload): Promise<void> {
    this.add(upload);
    await this.#try(gate, upload);
    if (this.#pending.has(upload.id)) void this.#settle(gate, upload);
  }

  /** The share is there. */
  run(gate: Upstream): void {
    for (const upload of this.#pending.values())
      if (upload.share === gate.name) void this.#settle(gate, upload);
  }

  /** What lies at this path now is meant to. */
  async forget(share: string, parts: readonly string[]): Promise<void> {
    const path = parts.join('/');
    for (const upload of this.#pending.values())
      if (upload.share === share && upload.parts.join('/') === path) await this.#end(upload);
  }

  async #settle(gate: Upstream, upload: LeftUpload): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES && gate.attached; tries += 1) {
      const done = await gate.alone(formatPath(upload));
      await this.#try(gate, upload).finally(done);
      if (!this.#pending.has(upload.id)) return;
      await pause(TRY_AGAIN_MS);
    }
  }

  async #try(gate: Upstream, upload: LeftUpload): Promise<void> {
    if (!this.#pending.has(upload.id)) return;
    const isDone = await this.#mend(gate, formatPath(upload), upload).catch(() => false);
    if (isDone) await this.#end(upload);
  }

  async #end(upload: LeftUpload): Promise<void> {
    this.#pending.delete(upload.id);
    await this.#tools.journal.end(upload);
    if (upload.body !== undefined) await rm(upload.body, { force: true });
  }

  /** True when nothing is left to do. */
  async #mend(gate: Upstream, path: string, upload: LeftUpload): Promise<boolean> {
    const found = await statOf(gate, upload.parts, upload.headers['host'] ?? 'localhost');
    if (!found || !isTornBy(upload, found)) return true;
    this.#tools.log(
      `upload of ${path} did not come to its end: ${upload.kind === 'whole' ? 'its content is put in place' : 'it is taken back'}`,
    );
    if (upload.kind === 'whole') return this.#complete(gate, path, upload);
    const method = upload.kind === 'new' ? 'DELETE' : 'PUT';
    const response = await gate.ask(
      { method, path, headers: { ...upload.headers, 'content-length': 0 } },
      { isRepeatable: true },
    );
    response.resume();
    const status = response.statusCode ?? 0;
    return status < 300 || status === 404;
  }

  async #complete(gate: Upstream, path: string, upload: LeftUpload): Promise<boolean> {
    const file = upload.body ?? '';
    const size = await stat(file).then(
      (one) => one.size,
      () => undefined,
    );
    if (size === undefined) return true;
    const { journal } = this.#tools;
    const commit = new Commit({
      upstream: gate,
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
 * Whether what lies there was last written by the upload: a file that somebody has written since is left
 * alone.
 */
export function isTornBy(
  upload: LeftUpload,
  { isFolder, modifiedMs }: Pick<Found, 'isFolder' | 'modifiedMs'>,
): boolean {
  return !isFolder && modifiedMs >= upload.begunMs - SLACK_MS && modifiedMs <= upload.seenMs + SLACK_MS;
}
