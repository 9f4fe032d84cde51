import { rm, stat } from 'node:fs/promises';
import { pause } from './front-clock.ts';
import { Commit } from './front-commit.ts';
import type { Gate } from './front-gate.ts';
import type { Journal, LeftUpload } from './front-journal.ts';
import { formatPath } from './front-path.ts';
import { statOf } from './front-stat.ts';
import type { Found } from './front-stat.ts';

/** Times of files come in whole seconds, and a file is closed a little after its writer has gone. */
const SLACK_MS = 5_000;
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
  readonly #left = new Map<string, LeftUpload[]>();

  constructor(tools: ClearUpTools) {
    this.#tools = tools;
  }

  /** Waits for its share. */
  add(upload: LeftUpload): void {
    this.#left.set(upload.share, [...(this.#left.get(upload.share) ?? []), upload]);
  }

  /** The share is there. Never rejects. */
  async run(gate: Gate): Promise<void> {
    const uploads = this.#left.get(gate.name) ?? [];
    this.#left.delete(gate.name);
    for (const upload of uploads) await this.#settle(gate, upload);
  }

  async #settle(gate: Gate, upload: LeftUpload): Promise<void> {
    const path = formatPath({ share: gate.name, parts: upload.parts });
    const done = await gate.alone(path);
    try {
      for (let tries = 0; tries < MAX_TRIES && gate.isKnown; tries += 1) {
        if (await this.#mend(gate, path, upload).catch(() => false)) return await this.#end(upload);
        await pause(TRY_AGAIN_MS);
      }
      this.add(upload);
    } finally {
      done();
    }
  }

  async #end(upload: LeftUpload): Promise<void> {
    await this.#tools.journal.end(upload);
    if (upload.body !== undefined) await rm(upload.body, { force: true });
  }

  /** True when nothing is left to do. */
  async #mend(gate: Gate, path: string, upload: LeftUpload): Promise<boolean> {
    const found = await statOf(gate, upload.parts, upload.headers['host'] ?? 'localhost');
    if (!found || !isTornBy(upload, found)) return true;
    this.#tools.log(`upload of ${path} did not come to its end: ${upload.kind === 'whole' ? 'its content is put in place' : 'it is taken back'}`);
    if (upload.kind === 'whole') return this.#complete(gate, path, upload);
    const method = upload.kind === 'new' ? 'DELETE' : 'PUT';
    const response = await gate.ask({ method, path, headers: { ...upload.headers, 'content-length': 0 } }, { isRepeatable: true });
    response.resume();
    const status = response.statusCode ?? 0;
    return status < 300 || status === 404;
  }

  async #complete(gate: Gate, path: string, upload: LeftUpload): Promise<boolean> {
    const file = upload.body ?? '';
    const size = await stat(file).then((one) => one.size, () => undefined);
    if (size === undefined) return true;
    const { journal } = this.#tools;
    const commit = new Commit({ gate, parts: upload.parts, path, headers: upload.headers, body: { file, size }, spool: this.#tools.spool(), journal, clearUp: () => undefined, noted: upload });
    return (await commit.run()) === undefined;
  }
}

/** Whether what lies there was last written by the upload: a file that somebody has written since is left alone. */
export function isTornBy(upload: LeftUpload, { isFolder, modifiedMs }: Pick<Found, 'isFolder' | 'modifiedMs'>): boolean {
  return !isFolder && modifiedMs >= upload.begunMs - SLACK_MS && modifiedMs <= upload.seenMs + SLACK_MS;
}
