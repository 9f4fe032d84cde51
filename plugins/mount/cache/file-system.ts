import { realpath } from 'node:fs/promises';
import type { Clock, MountEntry, MountTable } from 'mountkeeper';

/** The mount entry of the file system that contains the path, with symlinks followed. */
export async function holderOf(named: string, mountTable: MountTable): Promise<MountEntry | undefined> {
  // Not there yet: the name alone tells which file system it would lie on.
  const path = await realpath(named).catch(() => named);
  const above = (await mountTable.list()).filter(
    (entry) =>
      entry.mountPoint === '/' || path === entry.mountPoint || path.startsWith(`${entry.mountPoint}/`),
  );
  return above.sort((a, b) => a.mountPoint.length - b.mountPoint.length).at(-1);
}

/** Whether that file system is mounted read-only. */
export async function isReadOnly(path: string, mountTable: MountTable): Promise<boolean> {
  return (await holderOf(path, mountTable))?.readOnly === true;
}

/** A symlink on the way may be changed, which the mount table does not show. */
const FOLLOW_AGAIN_MS = 60_000;

/** Checks often whether a path is read-only: while the mount table is unchanged, so is the answer. */
export class ReadOnlyLook {
  readonly #path: string;
  readonly #mountTable: MountTable;
  readonly #clock: Clock;
  #table: readonly MountEntry[] | undefined;
  #lookedAtMs = -Infinity;
  #isReadOnly = false;

  constructor(path: string, mountTable: MountTable, clock: Clock) {
    this.#path = path;
    this.#mountTable = mountTable;
    this.#clock = clock;
  }

  /** Never rejects: an unknown state is no reason to report a read-only disk. */
  async isReadOnly(): Promise<boolean> {
    try {
      const table = await this.#mountTable.list();
      const nowMs = this.#clock.monotonic();
      if (table === this.#table && nowMs - this.#lookedAtMs < FOLLOW_AGAIN_MS) return this.#isReadOnly;
      this.#isReadOnly = await isReadOnly(this.#path, this.#mountTable);
      this.#table = table;
      this.#lookedAtMs = nowMs;
    } catch {
      // Unknown: reads and writes show by themselves whether it is.
      this.#isReadOnly = false;
    }
    return this.#isReadOnly;
  }
}
