/**
 * The shares that one protocol exports, whatever its server: what is exported, what cannot be and why, and
 * what a server of a former daemon still exports until this daemon has checked it. All changes run one
 * after the other, so that a server's files are never written twice at once.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Notice } from '../../contract/notifications.ts';
import type { Mount, ShareSpec } from '../../contract/mount.ts';
import type { Clock, Logger, MountTable } from '../../contract/platform.ts';
import type { LiveShare, SharesService } from '../../contract/shares.ts';
import { createSerialQueue } from '../../platform/serial-queue.ts';
import { reasonOf } from '../reason-of.ts';

/** Shares of a former daemon that no mounted share has claimed after this time are removed. */
const CLAIM_MS = 30_000;

export interface ExportTableOptions<Entry extends { readonly path: string }> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mountTable: MountTable;
  readonly shares: SharesService;
  /** As in a share's `protocols`. */
  readonly protocol: string;
  /**
   * What the server must know about the share; `path` is the mount point. Throws a plain sentence when the
   * share cannot be exported.
   */
  readonly describe: (spec: ShareSpec, mount: Mount, former: Entry | undefined) => Entry | Promise<Entry>;
  /**
   * False: by the running document the share is not shown here any more, which its mount may not have been told yet.
   * Default: it is.
   */
  readonly isMeant?: (share: string) => boolean;
  /**
   * Makes the server match `entries`. `changed` is a share that was exported before and is now removed or
   * exported differently. When it rejects, it is called again for the same share by `catchUp`.
   */
  readonly apply: (changed: string | undefined) => Promise<void>;
  /**
   * True: one `apply` makes the server take all entries, whatever `changed` is, so it is called once for all
   * shares that wait for it, with undefined. Default: once for each.
   */
  readonly appliesAll?: boolean;
  /**
   * What else than the shares `describe` reads, such as the document: when it is another object than before,
   * `catchUp` describes all shares again, also those that could not be exported. Default: nothing else.
   */
  readonly basis?: () => unknown;
}

export interface ExportTable<Entry> {
  /** What should be exported now, by share name. */
  readonly entries: ReadonlyMap<string, Entry>;
  /**
   * Adds the shares that are mounted now, after the entries (`former`) that a running server already
   * exports. Nothing else is added or removed before `former` resolves: a share whose entry is not known
   * yet would look like a new one.
   */
  open(former?: () => Promise<ReadonlyMap<string, Entry>>): Promise<void>;
  /** Exports the share, or removes it when it should not be exported. */
  add(spec: ShareSpec, mount: Mount): Promise<void>;
  remove(share: string): Promise<void>;
  /**
   * Describes all exported shares again, and those that could not be exported, because something other than the
   * shares has changed.
   */
  redescribe(): Promise<void>;
  /** Removes exports of a former daemon that no share has claimed. Call it every few seconds. */
  dropUnclaimed(): Promise<void>;
  /**
   * Describes them again when their basis is another one, applies again what a rejected `apply`
   * has left, and never rejects. Call it every few seconds.
   */
  catchUp(): Promise<void>;
  /** Runs work on the server's files after all earlier work. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** One notice for each share that cannot be exported. */
  notices(): readonly Notice[];
}

export function createExportTable<Entry extends { readonly path: string }>(
  options: ExportTableOptions<Entry>,
): ExportTable<Entry> {
  return new Shown(options);
}

/** A change that the server has not taken yet. */
interface Unapplied {
  /** As `apply` is told. */
  readonly changed: string | undefined;
  /** Why it was not taken the last time. */
  readonly reason?: string;
}

class Shown<Entry extends { readonly path: string }> implements ExportTable<Entry> {
  readonly entries = new Map<string, Entry>();
  readonly #options: ExportTableOptions<Entry>;
  readonly #unclaimed = new Set<string>();
  readonly #refused = new Map<string, string>();
  /** By share. The server may let somebody in by the former entry until it is empty. */
  readonly #unapplied = new Map<string, Unapplied>();
  #basis: unknown;
  #openedAtMs = 0;
  readonly #turns = createSerialQueue();

  constructor(options: ExportTableOptions<Entry>) {
    this.#options = options;
  }

  async open(former?: () => Promise<ReadonlyMap<string, Entry>>): Promise<void> {
    const { clock, mountTable, shares } = this.#options;
    this.#openedAtMs = clock.monotonic();
    this.#basis = this.#options.basis?.();
    await this.inTurn(async () => {
      for (const [share, entry] of (await former?.()) ?? []) {
        if (!(await mountTable.find(entry.path))) continue;
        this.entries.set(share, entry);
        this.#unclaimed.add(share);
      }
    });
    for (const {
      spec: { share },
    } of shares.list()) {
      // Read again: it may have been unmounted while another one was added.
      const live = shares.get(share.name);
      if (live?.mount) await this.add(live.spec, live.mount);
    }
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    const { name, protocols } = spec.share;
    if (!protocols.includes(this.#options.protocol)) {
      this.#refused.delete(name);
      return this.remove(name);
    }
    await this.inTurn(() => this.#show(spec, mount));
  }

  async redescribe(): Promise<void> {
    await this.inTurn(async () => {
      const basis = this.#options.basis?.();
      for (const name of new Set([...this.entries.keys(), ...this.#refused.keys()])) {
        const live = this.#options.shares.get(name);
        if (live?.mount && (this.entries.has(name) || this.#isWanted(live)))
          await this.#take(live.spec, live.mount);
      }
      this.#basis = basis;
      // All of them are known by the first call, so that a server that reads all at once does so once.
      await this.#apply([...this.#unapplied.keys()]);
    });
  }

  async catchUp(): Promise<void> {
    const isOther = this.#options.basis?.() !== this.#basis;
    if (!isOther && this.#unapplied.size === 0) return;
    const work = isOther ? this.redescribe() : this.inTurn(() => this.#apply([...this.#unapplied.keys()]));
    // Told in the log.
    await work.catch(() => undefined);
  }

  #isWanted({ spec }: LiveShare): boolean {
    return spec.share.protocols.includes(this.#options.protocol);
  }

  async #show(spec: ShareSpec, mount: Mount): Promise<void> {
    await this.#take(spec, mount);
    // By what was read just now, which may never have been the basis: `catchUp` looks once more.
    if (this.#refused.has(spec.share.name)) this.#basis = undefined;
    await this.#apply([spec.share.name]);
  }

  async #take(spec: ShareSpec, mount: Mount): Promise<void> {
    const { name } = spec.share;
    this.#unclaimed.delete(name);
    const next = await this.#describe(spec, mount);
    const former = this.entries.get(name);
    if (isDeepStrictEqual(former, next)) return;
    const changed = former ? name : this.#unapplied.get(name)?.changed;
    this.#unapplied.set(name, { ...this.#unapplied.get(name), changed });
    if (next) this.entries.set(name, next);
    else this.entries.delete(name);
  }

  async remove(share: string): Promise<void> {
    this.#refused.delete(share);
    await this.inTurn(async () => {
      this.#unclaimed.delete(share);
      if (this.entries.delete(share)) this.#unapplied.set(share, { changed: share });
      await this.#apply([share]);
    });
  }

  /** Tries each of the shares that waits for it, or all at once; then rejects with the first failure. */
  async #apply(shares: readonly string[]): Promise<void> {
    const isDue = shares.some((share) => this.#unapplied.has(share));
    if (this.#options.appliesAll === true) return isDue ? this.#applyAll() : undefined;
    const failures: unknown[] = [];
    for (const share of shares) {
      const waiting = this.#unapplied.get(share);
      if (!waiting) continue;
      try {
        await this.#options.apply(waiting.changed);
        this.#unapplied.delete(share);
      } catch (error) {
        failures.push(error);
        this.#noteFailure(share, waiting, error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  async #applyAll(): Promise<void> {
    try {
      await this.#options.apply(undefined);
      this.#unapplied.clear();
    } catch (error) {
      for (const [share, waiting] of this.#unapplied) this.#noteFailure(share, waiting, error);
      throw error;
    }
  }

  #noteFailure(share: string, waiting: Unapplied, error: unknown): void {
    const reason = reasonOf(error);
    this.#unapplied.set(share, { ...waiting, reason });
    if (waiting.reason !== reason)
      this.#options.log.error(
        { share, err: error },
        'the server has not taken the change of a share; it is tried again',
      );
  }

  async dropUnclaimed(): Promise<void> {
    if (this.#unclaimed.size === 0) return;
    const { clock, shares } = this.#options;
    const isLate = clock.monotonic() - this.#openedAtMs > CLAIM_MS;
    const living = new Map(shares.list().map((share) => [share.spec.share.name, share]));
    for (const name of this.#unclaimed)
      if (living.get(name)?.health === 'failed' || (isLate && !living.get(name)?.mount))
        await this.remove(name);
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(work);
  }

  notices(): readonly Notice[] {
    const where = this.#options.protocol === 'webdav' ? 'WebDAV' : this.#options.protocol.toUpperCase();
    return [...this.#refused].map(([share, reason]) => ({
      level: 'warning',
      message: `the share '${share}' is not shown over ${where}: ${reason}`,
    }));
  }

  /** Undefined when the share cannot be exported. */
  async #describe(spec: ShareSpec, mount: Mount): Promise<Entry | undefined> {
    const { name } = spec.share;
    if (this.#options.isMeant?.(name) === false) {
      this.#refused.delete(name);
      return undefined;
    }
    try {
      const entry = await this.#options.describe(spec, mount, this.entries.get(name));
      this.#refused.delete(name);
      return entry;
    } catch (error) {
      const reason = reasonOf(error);
      if (this.#refused.get(name) !== reason)
        this.#options.log.error({ share: name, reason }, 'share cannot be shown');
      this.#refused.set(name, reason);
      return undefined;
    }
  }
}
