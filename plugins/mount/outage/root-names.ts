/**
 * Some of the names at the top of a share's folder on the remote, kept on the disk. Where a NAS has lost a disk, the
 * empty folder that it was mounted on answers in its place, and only these names tell the two apart.
 */
import { readFile } from 'node:fs/promises';
import { createSerialQueue, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';

/** Spread over the whole folder: who clears out old files takes what stands side by side. */
const MOST_NAMES = 20;
/** One folder may be all that there is, and be renamed by others. */
const FEWEST_NAMES = 2;
/** Files that are younger may be in a folder whose owner takes them out all at once, as a scanner's. */
const SETTLED_MS = 86_400_000;
/** What a NAS and its users' desktops make anywhere, also in an empty mount point. */
const HOUSEKEEPING = /^(?:[.@#$]|lost\+found$|System Volume Information$)/;

export interface ListedName {
  readonly Name: string;
  readonly IsDir: boolean;
}

export interface KeptName {
  readonly name: string;
  readonly isFolder: boolean;
  /** When it was first seen, in milliseconds since the epoch. */
  readonly sinceMs: number;
}

/** Whether a folder that shows these names now must be another one than the folder that had the kept ones. */
export function haveAllGone(kept: readonly KeptName[], there: ReadonlySet<string>, nowMs: number): boolean {
  return (
    kept.length >= FEWEST_NAMES &&
    kept.some(({ isFolder, sinceMs }) => isFolder || nowMs - sinceMs >= SETTLED_MS) &&
    !kept.some(({ name }) => there.has(name))
  );
}

/** What is kept of a listing: what was kept before, and as many others as there is room for, folders first. */
export function namesToKeep(
  kept: readonly KeptName[],
  listed: readonly ListedName[],
  nowMs: number,
): readonly KeptName[] {
  const there = new Set(listed.map(({ Name: name }) => name));
  const still = kept.filter(({ name }) => there.has(name));
  const known = new Set(still.map(({ name }) => name));
  const others = listed
    .filter(({ Name: name }) => !known.has(name) && !HOUSEKEEPING.test(name))
    .map(({ Name: name, IsDir: isFolder }) => ({ name, isFolder, sinceMs: nowMs }));
  const added = [true, false].reduce<readonly KeptName[]>(
    (chosen, wanted) => [
      ...chosen,
      ...spread(
        others.filter(({ isFolder }) => isFolder === wanted),
        MOST_NAMES - still.length - chosen.length,
      ),
    ],
    [],
  );
  return [...still, ...added];
}

function spread<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, index) => all[Math.floor((index * all.length) / most)] as T);
}

export interface RootNamesOptions {
  /** Where they are kept. */
  readonly file: string;
  /** Of the place on the remote: names of another one count for nothing. */
  readonly identity: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Logger;
}

export class RootNames {
  readonly #options: RootNamesOptions;
  readonly #writing = createSerialQueue();
  #kept: readonly KeptName[] = [];
  #haveGone = false;
  #onDisk = '';
  #reading: Promise<void> | undefined;
  /** When a change made here has last been about a name, in monotonic milliseconds. */
  readonly #changedAt = new Map<string, number>();

  constructor(options: RootNamesOptions) {
    this.#options = options;
  }

  get kept(): readonly KeptName[] {
    return this.#kept;
  }

  /** A change made here has been about one of them since the last listing: until the next one it says nothing. */
  get isChanged(): boolean {
    return this.#changedAt.size > 0;
  }

  /** Never rejects: what cannot be read is learnt anew. */
  read(): Promise<void> {
    this.#reading ??= this.#read();
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { file, identity, log } = this.#options;
    try {
      const text = await readFile(file, 'utf8').catch(undefinedWhenMissing);
      if (text === undefined) return;
      const { identity: of, names } = JSON.parse(text) as { identity: string; names: readonly KeptName[] };
      if (of !== identity || !Array.isArray(names)) return;
      this.#kept = names;
      this.#onDisk = text;
    } catch (err) {
      log.debug({ err }, 'names at the top of the share not read');
    }
  }

  /**
   * False where all names have gone at once; then they are kept as they were. `beganMs`: when the remote was asked,
   * in monotonic milliseconds.
   */
  listed(listed: readonly ListedName[], beganMs: number): boolean {
    const nowMs = this.#options.clock.now();
    const there = new Set(listed.map(({ Name: name }) => name));
    // One that was changed into here may be there again by that alone.
    const telling = this.#kept.filter(({ name }) => !this.#changedAt.has(name) || !there.has(name));
    this.#haveGone = haveAllGone(telling, there, nowMs);
    if (this.#haveGone) return false;
    const known = new Set(this.#kept.map(({ name }) => name));
    for (const [name, atMs] of this.#changedAt) if (atMs < beganMs) this.#changedAt.delete(name);
    this.#kept = namesToKeep(
      this.#kept,
      listed.filter(({ Name: name }) => !this.#changedAt.has(name) || known.has(name)),
      nowMs,
    );
    void this.save();
    return true;
  }

  /**
   * Call it when a change made here begins, and when it has ended: it is no sign of anything that its name is gone
   * then, or there.
   */
  changed(path: string): void {
    const [name = '', ...inside] = path.split('/');
    this.#changedAt.set(name, this.#options.clock.monotonic());
    // A change in a folder may make that anew, and never takes it away.
    if (inside.length > 0) return;
    // What was under way when all had gone does not make them fewer.
    if (!this.#haveGone && this.#kept.some((one) => one.name === name))
      this.#kept = this.#kept.filter((one) => one.name !== name);
  }

  /** Whatever is there next is meant to be there. */
  forget(): void {
    this.#haveGone = false;
    this.#kept = [];
    void this.save();
  }

  /** Resolves when the names are on the disk. Never rejects: the next start would only know former ones. */
  save(): Promise<void> {
    const { file, identity, log } = this.#options;
    const text = JSON.stringify({ identity, names: this.#kept });
    if (text === this.#onDisk) return this.#writing.run(() => Promise.resolve());
    this.#onDisk = text;
    return this.#writing
      .run(() => writeWhole(file, text, { isDurable: false }))
      .catch((err: unknown) => {
        this.#onDisk = '';
        log.debug({ err }, 'names at the top of the share not kept');
      });
  }
}
