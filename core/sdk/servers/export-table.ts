/**
 * The shares that one protocol shows, whatever its server: what is to be shown, what cannot be and why, and
 * what a server that a former daemon left shows until the daemon of today has looked at it. Everything is
 * done in turn, so that a server's files are never written twice at once.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Notice } from '../../contract/notifications.ts';
import type { ShareConfig } from '../../contract/config.ts';
import type { Mount, ShareSpec } from '../../contract/mount.ts';
import type { Clock, Logger, MountTable } from '../../contract/platform.ts';
import type { SharesService } from '../../contract/shares.ts';
import { createSerialQueue } from '../../platform/serial-queue.ts';

/** Shares of a former daemon that nobody has claimed by then go. */
const CLAIM_MS = 30_000;

export interface ShownSharesOptions<Entry extends { readonly path: string }> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mountTable: MountTable;
  readonly shares: SharesService;
  /** As in a share's `protocols`; one that cannot stand there shows every share. */
  readonly protocol: string;
  /**
   * What the server must know of the share; `path` is the mount point. Throws a plain sentence when it cannot
   * be shown.
   */
  readonly describe: (spec: ShareSpec, mount: Mount, former: Entry | undefined) => Entry | Promise<Entry>;
  /**
   * Brings the server in line with `entries`. `changed` was shown before and has gone or is shown otherwise
   * now.
   */
  readonly apply: (changed: string | undefined) => Promise<void>;
}

export interface ShownShares<Entry> {
  /** What is to be shown now, by the share's name. */
  readonly entries: ReadonlyMap<string, Entry>;
  /**
   * The shares that are mounted now; before them, what a server that is still there shows already. Nothing is
   * added or removed before `former` has said that: a share whose entry is not known yet would be taken for a
   * new one.
   */
  open(former?: () => Promise<ReadonlyMap<string, Entry>>): Promise<void>;
  /** Shows the share, or takes it back where it is not to be shown. */
  add(spec: ShareSpec, mount: Mount): Promise<void>;
  remove(share: string): Promise<void>;
  /** Describes anew what is shown: something beside the shares themselves has changed. */
  redescribe(): Promise<void>;
  /** Takes back what a former daemon showed and nobody has claimed. To be called every few seconds. */
  dropUnclaimed(): Promise<void>;
  /** Runs work on the server's files after all work that was begun before. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Which shares cannot be shown, and why. */
  notices(): readonly Notice[];
}

type Choosable = ShareConfig['protocols'][number];

function isChoosable(protocol: string): protocol is Choosable {
  return (['smb', 'nfs', 'webdav'] satisfies Choosable[] as string[]).includes(protocol);
}

export function showShares<Entry extends { readonly path: string }>(
  options: ShownSharesOptions<Entry>,
): ShownShares<Entry> {
  return new Shown(options);
}

class Shown<Entry extends { readonly path: string }> implements ShownShares<Entry> {
  readonly entries = new Map<string, Entry>();
  readonly #options: ShownSharesOptions<Entry>;
  readonly #unclaimed = new Set<string>();
  readonly #refused = new Map<string, string>();
  #openedAtMs = 0;
  readonly #turns = createSerialQueue();

  constructor(options: ShownSharesOptions<Entry>) {
    this.#options = options;
  }

  async open(former?: () => Promise<ReadonlyMap<string, Entry>>): Promise<void> {
    const { clock, mountTable, shares } = this.#options;
    this.#openedAtMs = clock.monotonic();
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
      // Looked at anew: it may have been taken down while another one was added.
      const live = shares.list().find((one) => one.spec.share.name === share.name);
      if (live?.mount && live.health === 'healthy') await this.add(live.spec, live.mount);
    }
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    const { name, protocols } = spec.share;
    if (isChoosable(this.#options.protocol) && !protocols.includes(this.#options.protocol)) {
      this.#refused.delete(name);
      return this.remove(name);
    }
    await this.inTurn(() => this.#show(spec, mount));
  }

  async redescribe(): Promise<void> {
    for (const name of this.entries.keys()) {
      await this.inTurn(async () => {
        const live = this.#options.shares.list().find((one) => one.spec.share.name === name);
        // It may have been taken back meanwhile.
        if (live?.mount && this.entries.has(name)) await this.#show(live.spec, live.mount);
      });
    }
  }

  async #show(spec: ShareSpec, mount: Mount): Promise<void> {
    const { name } = spec.share;
    this.#unclaimed.delete(name);
    const former = this.entries.get(name);
    const next = await this.#describe(spec, mount);
    if (isDeepStrictEqual(former, next)) return;
    if (next) this.entries.set(name, next);
    else this.entries.delete(name);
    await this.#options.apply(former ? name : undefined);
  }

  async remove(share: string): Promise<void> {
    this.#refused.delete(share);
    await this.inTurn(async () => {
      this.#unclaimed.delete(share);
      if (this.entries.delete(share)) await this.#options.apply(share);
    });
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

  /** Undefined when it cannot be shown. */
  async #describe(spec: ShareSpec, mount: Mount): Promise<Entry | undefined> {
    const { name } = spec.share;
    try {
      const entry = await this.#options.describe(spec, mount, this.entries.get(name));
      this.#refused.delete(name);
      return entry;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#refused.get(name) !== reason)
        this.#options.log.error({ share: name, reason }, 'share cannot be shown');
      this.#refused.set(name, reason);
      return undefined;
    }
  }
}
