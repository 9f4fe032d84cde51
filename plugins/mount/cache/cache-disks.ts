/**
 * On which disk each cache folder lies. While that disk is not mounted, its folder looks like one that was never used:
 * all would seem to be on the NAS, and users would write anew what waits there.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { MountTable } from 'mountkeeper';
import { holderOf } from './file-system.ts';

/** Where the disk of each folder was mounted; not of those on the root file system, which is always there. */
type Known = ReadonlyMap<string, string>;

export class CacheDisks {
  readonly #file: string;
  readonly #mountTable: MountTable;
  readonly #saving = createSerialQueue();
  readonly #missing = new Map<string, string>();
  #known: Promise<Known> | undefined;

  constructor(stateDir: string, mountTable: MountTable) {
    this.#file = join(stateDir, 'mount', 'cache-disks.json');
    this.#mountTable = mountTable;
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

  /** The same, and remembers the disk. Call it before anything is cached there. */
  async note(root: string): Promise<void> {
    await this.require(root);
    const at = (await holderOf(root, this.#mountTable))?.mountPoint ?? '/';
    await this.#saving.run(async () => {
      const known = new Map(await this.#read());
      if (known.get(root) === (at === '/' ? undefined : at)) return;
      if (at === '/') known.delete(root);
      else known.set(root, at);
      await writeWhole(this.#file, `${JSON.stringify(Object.fromEntries(known))}\n`);
      this.#known = Promise.resolve(known);
    });
  }

  async #problem(root: string): Promise<string | undefined> {
    const at = (await this.#read()).get(root);
    if (at === undefined) return undefined;
    // One that is mounted on demand is mounted by this.
    await holderOf(root, this.#mountTable);
    const isMounted = (await this.#mountTable.list()).some(({ mountPoint }) => mountPoint === at);
    if (isMounted) return undefined;
    return (
      `The disk of the cache folder ${root} is not mounted at ${at}: what waits there for the NAS is not known. ` +
      `Mount it; if it is gone for good, remove its line from ${this.#file}.`
    );
  }

  #read(): Promise<Known> {
    const reading = (this.#known ??= readFile(this.#file, 'utf8').catch(undefinedWhenMissing).then(parse));
    // Whoever waits for it hears of it; the next one reads anew.
    reading.catch(() => (this.#known = undefined));
    return reading;
  }
}

function parse(text: string | undefined): Known {
  const value: unknown = JSON.parse(text ?? '{}');
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
