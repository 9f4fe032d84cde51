import { realpath } from 'node:fs/promises';
import type { Clock, MountEntry, MountTable } from 'mountkeeper';

/** The file system that a path lies on, wherever links lead it. */
export async function holderOf(named: string, mountTable: MountTable): Promise<MountEntry | undefined> {
  const path = await realpath(named).catch(() => named);
  const above = (await mountTable.list()).filter(
    (entry) =>
      entry.mountPoint === '/' || path === entry.mountPoint || path.startsWith(`${entry.mountPoint}/`),
  );
  return above.sort((a, b) => a.mountPoint.length - b.mountPoint.length).at(-1);
}

/** Whether what lies there can be read only. */
export async function isReadOnly(path: string, mountTable: MountTable): Promise<boolean> {
  return (await holderOf(path, mountTable))?.readOnly === true;
}

/** A link on the way may be made to lead elsewhere, which the table does not show. */
const FOLLOW_AGAIN_MS = 60_000;

/** Looks often whether a path can be read only: while the table is the very same, so is the answer. */
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

  /** As last seen. */
  get isReadOnly(): boolean {
    return this.#isReadOnly;
  }

  /** Never rejects: what cannot be told is no reason to say that the disk takes nothing. */
  async look(): Promise<void> {
    try {
      const table = await this.#mountTable.list();
      const nowMs = this.#clock.monotonic();
      if (table === this.#table && nowMs - this.#lookedAtMs < FOLLOW_AGAIN_MS) return;
      this.#isReadOnly = await isReadOnly(this.#path, this.#mountTable);
      this.#table = table;
      this.#lookedAtMs = nowMs;
    } catch {
      this.#isReadOnly = false;
    }
  }
}
