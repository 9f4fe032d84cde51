import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { now } from '../clock.ts';

const TOUCH_MS = 2_000;
/** Nobody remembers what was meant by then. */
const FORGET_MS = 7 * 86_400_000;

/**
 * An upload that is under way in a share: what must be made of it when it does not come to its end.
 * `new`: there was nothing, the torn file goes. `empty`: there was an empty file, so there is again. `whole`:
 * all of the content is in `body`, the file gets it.
 */
export interface Upload {
  readonly id: string;
  readonly kind: 'new' | 'empty' | 'whole';
  readonly share: string;
  readonly parts: readonly string[];
  readonly body?: string;
  readonly begunMs: number;
  /** Headers that the backend needs to see again. */
  readonly headers: Readonly<Record<string, string>>;
}

/** With the last moment at which it is known to have been under way. */
export interface LeftUpload extends Upload {
  readonly seenMs: number;
}

/** Notes on the disk, so that a front that was killed knows what it was at. */
export class Journal {
  readonly #folder: string;
  readonly #active = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What former proxies did not bring to an end. */
  async open(): Promise<readonly LeftUpload[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const names = await readdir(this.#folder);
    const left: LeftUpload[] = [];
    for (const name of names) {
      const upload = name.endsWith('.json') ? await this.#read(name) : undefined;
      if (upload && now() - upload.seenMs < FORGET_MS) left.push(upload);
      else await rm(join(this.#folder, name), { force: true });
    }
    return left;
  }

  /** On the disk before it resolves. */
  async begin(upload: Omit<Upload, 'id' | 'begunMs'>, begunMs = now()): Promise<Upload> {
    const noted: Upload = { ...upload, id: randomUUID(), begunMs };
    const file = this.#file(noted.id);
    await writeFile(`${file}.new`, JSON.stringify(noted), { mode: 0o600 });
    await rename(`${file}.new`, file);
    this.#active.set(noted.id, now());
    return noted;
  }

  async end({ id }: Upload): Promise<void> {
    this.#active.delete(id);
    await rm(this.#file(id), { force: true });
  }

  /** Called while an upload goes on: tells how long it lived. */
  touch({ id }: Upload): void {
    const touchedMs = this.#active.get(id);
    if (touchedMs === undefined || now() - touchedMs < TOUCH_MS) return;
    this.#active.set(id, now());
    const time = new Date();
    void utimes(this.#file(id), time, time).catch(() => undefined);
  }

  /** Its end is left to whoever clears up. */
  leave(upload: Upload): LeftUpload {
    this.#active.delete(upload.id);
    return { ...upload, seenMs: now() };
  }

  async #read(name: string): Promise<LeftUpload | undefined> {
    try {
      const file = join(this.#folder, name);
      const upload = JSON.parse(await readFile(file, 'utf8')) as Upload;
      // It may have gone on until the next touch.
      return { ...upload, seenMs: (await stat(file)).mtimeMs + 2 * TOUCH_MS };
    } catch {
      return undefined;
    }
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}
