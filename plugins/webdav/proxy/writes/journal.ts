import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { writeWhole } from 'mountkeeper/sdk';
import { clock } from '../clock.ts';
import { at } from '../places.ts';

const TOUCH_MS = 2_000;
/** After this time an interrupted upload no longer matters to anybody. */
const FORGET_MS = 7 * 86_400_000;
/** Of a `whole` one the content may be all that there is. */
const KEEP_MS = 30 * 86_400_000;

/**
 * A running upload in a share, with what to do if it is interrupted. `new`: there was no file, so the
 * incomplete one is deleted. `empty`: there was an empty file, so it is emptied again. `whole`: the
 * complete content is in `body` and is written to the file.
 */
export interface Upload {
  readonly id: string;
  readonly kind: 'new' | 'empty' | 'whole';
  readonly share: string;
  readonly parts: readonly string[];
  readonly body?: string;
  /** Bytes of the body, for what is streamed as its client announced them; absent in notes of former versions. */
  readonly size?: number;
  /** What is streamed begins so: up to 4 KiB of it, in base64; absent in notes of former versions. */
  readonly first?: string;
  /** The boot in which it began: what the disk says of it after another one may be older. */
  readonly boot?: string;
  /** The place on a NAS that its share showed, of a `whole` one: its content goes to no other. */
  readonly place?: string | undefined;
  readonly begunMs: number;
  /** Headers that the backend needs again. */
  readonly headers: Readonly<Record<string, string>>;
}

/** With the last moment at which the upload is known to have been running. */
export interface LeftUpload extends Upload {
  readonly seenMs: number;
  /** So much of what was streamed has gone on to the backend; absent where the proxy was killed meanwhile. */
  readonly passedBytes?: number;
  /** The write failed, and right after it the file was gone: both versions would be lost without the body. */
  readonly isTakenAway?: boolean;
}

/** Journal on disk, so that the next proxy knows what a killed one was doing. */
export class Journal {
  readonly #folder: string;
  #boot: string | undefined;
  readonly #active = new Map<string, number>();
  #hasUnread = false;

  constructor(folder: string) {
    this.#folder = at(folder);
  }

  /** Whether the disk did not give all notes: bodies that none asks for may be theirs. */
  get hasUnread(): boolean {
    return this.#hasUnread;
  }

  /** Uploads that former proxies did not finish, as they were begun. Of `whole` ones, also those that are too old. */
  async open(): Promise<readonly LeftUpload[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    // Where it is not told, no boot is another one.
    this.#boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined);
    const names = await readdir(this.#folder);
    const left: LeftUpload[] = [];
    for (const name of names) {
      const upload = name.endsWith('.json') ? await this.#read(name) : undefined;
      if (upload === 'unread') this.#hasUnread = true;
      else if (upload && (upload.kind === 'whole' || !this.isTooOld(upload))) left.push(upload);
      else await rm(join(this.#folder, name), { force: true });
    }
    return left.sort((one, other) => one.begunMs - other.begunMs);
  }

  /** Whether nobody has come for its content for so long that nobody will. */
  isTooOld({ kind, seenMs }: LeftUpload): boolean {
    return clock.now() - seenMs > (kind === 'whole' ? KEEP_MS : FORGET_MS);
  }

  /** On the disk before it resolves. */
  async begin(upload: Omit<Upload, 'id' | 'begunMs' | 'boot'>, begunMs = clock.now()): Promise<Upload> {
    const noted: Upload = {
      ...upload,
      id: randomUUID(),
      begunMs,
      ...(this.#boot !== undefined && { boot: this.#boot }),
    };
    await writeWhole(this.#file(noted.id), JSON.stringify(noted));
    this.#active.set(noted.id, clock.now());
    return noted;
  }

  /** Whether the machine has started anew since: by then the upload may have ended, and its note have come back. */
  isOfFormerBoot({ boot }: Upload): boolean {
    return boot !== undefined && this.#boot !== undefined && boot !== this.#boot;
  }

  async end({ id }: Upload): Promise<void> {
    this.#active.delete(id);
    await rm(this.#file(id), { force: true });
  }

  /** Called while an upload is running, so that the entry shows how long it lived. */
  touch({ id }: Upload): void {
    const touchedMs = this.#active.get(id);
    if (touchedMs === undefined || clock.now() - touchedMs < TOUCH_MS) return;
    this.#active.set(id, clock.now());
    const time = new Date();
    // Its upload ends, and the note with it; or the upload seems to have ended sooner than it did.
    void utimes(this.#file(id), time, time).catch(() => undefined);
  }

  /**
   * Its content is being written once more. On the disk before it resolves: whatever ends this process meanwhile, the
   * next one knows that what is there may be this.
   */
  async resume(upload: LeftUpload): Promise<LeftUpload> {
    const now = clock.now();
    const resumed = { ...upload, seenMs: now };
    await writeWhole(this.#file(upload.id), JSON.stringify(resumed));
    this.#active.set(upload.id, now);
    return resumed;
  }

  /**
   * Leaves the entry to the clean-up, of this proxy or of the next one. `seenMs`: when it was running last, if not just
   * now.
   */
  async leave(
    upload: Upload,
    {
      seenMs = clock.now(),
      ...found
    }: Pick<LeftUpload, 'passedBytes' | 'isTakenAway'> & { readonly seenMs?: number | undefined } = {},
  ): Promise<LeftUpload> {
    this.#active.delete(upload.id);
    if (Object.keys(found).length === 0) return { ...upload, seenMs };
    const noted = { ...upload, ...found };
    // Without room for it the next proxy knows as much as after a killed one.
    await writeWhole(this.#file(upload.id), JSON.stringify(noted)).catch(() => undefined);
    return { ...noted, seenMs };
  }

  /** Undefined for what is no note. One that the disk does not give now stays for a later proxy. */
  async #read(name: string): Promise<LeftUpload | 'unread' | undefined> {
    try {
      const file = join(this.#folder, name);
      const upload = JSON.parse(await readFile(file, 'utf8')) as Omit<LeftUpload, 'seenMs'>;
      // The upload may have been running until the next touch.
      return { ...upload, seenMs: (await stat(file)).mtimeMs + 2 * TOUCH_MS };
    } catch (error) {
      return error instanceof SyntaxError ? undefined : 'unread';
    }
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}
