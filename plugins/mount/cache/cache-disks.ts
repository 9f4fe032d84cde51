/**
 * On which disk each cache folder lies. While that disk is not mounted, or another one is mounted over it, its folder
 * looks like one that was never used: all would seem to be on the NAS, and users would write anew what waits there.
 */
import { randomUUID } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue, makeFolder, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { MountTable } from 'mountkeeper';
import { holderOf } from './file-system.ts';

/**
 * In the folder itself: one that has this is the one that was used. It is another one after each change of the place
 * where the disk is mounted: the folder may have been copied there, with its mark, from below that place.
 */
const MARK = 'cache-id';

const IN_MEMORY: ReadonlySet<string> = new Set(['tmpfs', 'ramfs']);

interface Disk {
  /** Where it was mounted. */
  readonly at: string;
  /** Tells it from others that are mounted there (`fileSystemOf`). Absent: not known, as to versions before. */
  readonly fs?: string;
}

interface CacheDisk extends Disk {
  /** What stands in the folder's mark. */
  readonly mark: string;
  /** What is about to stand there, or does already. */
  readonly next?: string;
  /** Nothing waited in the folder when the daemon was last stopped, and nobody has used it since. */
  readonly isEmpty?: true;
}

/** By the folder. */
type Known = ReadonlyMap<string, CacheDisk>;

export interface CacheDisksOptions {
  readonly stateDir: string;
  readonly mountTable: MountTable;
  /** Whether something waits in a folder whose disk is there, or may. Never rejects. */
  readonly mayHold: (root: string) => Promise<boolean>;
}

export class CacheDisks {
  readonly #file: string;
  readonly #options: CacheDisksOptions;
  readonly #saving = createSerialQueue();
  readonly #missing = new Map<string, string>();

  constructor(options: CacheDisksOptions) {
    this.#file = join(options.stateDir, 'mount', 'cache-disks.jsonl');
    this.#options = options;
  }

  /** A sentence for each folder whose disk was missing when it was last asked for. */
  get troubles(): readonly string[] {
    return [...this.#missing.values()];
  }

  /** Rejects with a sentence when the disk on which this folder was used is not mounted. */
  async require(root: string): Promise<void> {
    const problem = await this.#problem(root);
    if (problem === undefined) this.#missing.delete(root);
    else {
      this.#missing.set(root, problem);
      throw new Error(problem);
    }
  }

  /** The same, and remembers the disk, and no other where nothing waits. Call it before anything is cached there. */
  async note(root: string): Promise<void> {
    await this.require(root);
    const here = await this.#diskOf(root);
    await this.#saving.run(async () => {
      const known = await this.#read();
      const former = known.get(root);
      const isThere = former !== undefined && isOn(here, former) && (await markOf(root)) === former.mark;
      if (!isThere) return this.#markAnew(root, here, known);
      // It is the one that it was: where a disk is full, uploading comes first, and this with a later mount.
      await this.#noteAgain(root, { here, former, known }).catch((error: unknown) =>
        isFull(error) ? undefined : Promise.reject(error as Error),
      );
    });
  }

  async #noteAgain(
    root: string,
    { here, former, known }: { readonly here: Disk; readonly former: CacheDisk; readonly known: Known },
  ): Promise<void> {
    // A mark of a version that did not note the file system may stand in a copy below the disk, too.
    if (former.fs === undefined && here.fs !== undefined) return this.#markAnew(root, here, known);
    if (former.fs === here.fs && former.isEmpty !== true) return;
    await this.#write(new Map(known).set(root, entry(here, former.mark)));
  }

  /** On another disk, or without its mark: the folder gets another one. */
  async #markAnew(root: string, here: Disk, known: Known): Promise<void> {
    const former = known.get(root);
    const mark = former?.next ?? randomUUID();
    // Until the new one stands in the folder both are known: a kill in between makes no disk look like a missing one.
    if (former) await this.#write(new Map(known).set(root, { ...former, next: mark }));
    await makeFolder(root);
    await writeWhole(join(root, MARK), mark);
    const next = new Map([[root, entry(here, mark)]]);
    for (const [other, one] of known) if (other !== root && (await this.mayHold(other))) next.set(other, one);
    await this.#write(next);
  }

  /** Call it at a stop, when nothing waits in the folder and nobody uses it any more: it need not be there again. */
  async noteEmpty(root: string): Promise<void> {
    await this.#saving.run(async () => {
      const known = await this.#read();
      const disk = known.get(root);
      if (disk && (await markOf(root)) === disk.mark)
        await this.#write(new Map(known).set(root, { ...disk, isEmpty: true }));
    });
  }

  /** Whether something waits in a folder, or may. Never rejects. */
  async mayHold(root: string): Promise<boolean> {
    // A disk that is not there may hold anything; so may one of which nobody knows.
    const isKnown = await this.require(root).then(
      () => true,
      () => false,
    );
    return !isKnown || this.#options.mayHold(root);
  }

  async #problem(root: string): Promise<string | undefined> {
    const known = (await this.#read()).get(root);
    if (known === undefined) return undefined;
    const mark = await markOf(root);
    if (mark !== undefined && [known.mark, known.next].includes(mark)) return undefined;
    const table = await this.#options.mountTable.list();
    if (known.at !== '/' && !table.some(({ mountPoint }) => mountPoint === known.at))
      return (
        `The disk of the cache folder ${root} is not mounted at ${known.at}: what waits there for the NAS is not ` +
        `known. Mount it; if it is gone for good, remove its line from ${this.#file}.`
      );
    const here = await this.#diskOf(root);
    // On the same one, it was emptied by whoever set it up.
    if (isOn(here, known) || known.isEmpty === true) return undefined;
    return (
      `The cache folder ${root} is on another disk than before, which is mounted at ${here.at}: what waits for the ` +
      `NAS on the former one, used at ${known.at}, is hidden and not known. Have that one there again, as by ` +
      `unmounting what covers it; if nothing on it is to be kept, remove its line from ${this.#file}.`
    );
  }

  async #diskOf(root: string): Promise<Disk> {
    const holder = await holderOf(root, this.#options.mountTable);
    const at = holder?.mountPoint ?? '/';
    // One in memory is another after each boot, and what it held is gone.
    const fs = IN_MEMORY.has(holder?.fsType ?? '') ? undefined : await fileSystemOf(at);
    return { at, ...(fs !== undefined && { fs }) };
  }

  /** Each time: somebody may have removed a line. One that cannot be understood says nothing. */
  async #read(): Promise<Known> {
    const text = (await readFile(this.#file, 'utf8').catch(undefinedWhenMissing)) ?? '';
    return new Map(text.split('\n').flatMap(entryIn));
  }

  async #write(known: Known): Promise<void> {
    const lines = [...known].map((entry) => JSON.stringify(entry));
    await writeWhole(this.#file, `${lines.join('\n')}\n`);
  }
}

function entryIn(line: string): [string, CacheDisk][] {
  try {
    const [root, { at, mark, fs, next, isEmpty }] = JSON.parse(line) as [string, CacheDisk];
    if (![root, at, mark].every((one) => typeof one === 'string')) return [];
    const more = {
      ...(typeof fs === 'string' && { fs }),
      ...(typeof next === 'string' && { next }),
      ...(isEmpty === true && { isEmpty }),
    };
    return [[root, { at, mark, ...more }]];
  } catch {
    // An empty line, or one that was changed by hand.
    return [];
  }
}

/** The place and the mark come first: the package's purge reads these lines, too (`config/debian/postrm`). */
function entry({ at, ...more }: Disk, mark: string): CacheDisk {
  return { at, mark, ...more };
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** One of which only the place is known, as former versions noted it, is the one that is there. */
function isOn(here: Disk, known: Disk): boolean {
  return here.at === known.at && (known.fs === undefined || here.fs === known.fs);
}

/** Its root folder with the time of its birth, which is that of the file system. Undefined where nobody can tell. */
async function fileSystemOf(at: string): Promise<string | undefined> {
  // Only where it is mounted is known then.
  const found = await lstat(at, { bigint: true }).catch(() => undefined);
  return found && `${found.ino} ${found.birthtimeNs}`;
}

/** Undefined where there is none, or none that can be read. */
async function markOf(root: string): Promise<string | undefined> {
  // What is read here decides nothing but whether it is the same folder.
  return readFile(join(root, MARK), 'utf8').catch(() => undefined);
}
