/** Which shares clients are shown over WebDAV: behind which backend each, and whether they may write to it now. */
import { createExportTable } from 'mountkeeper';
import type { ExportTable, ExporterTools, Mount, ShareSpec } from 'mountkeeper';
import { Backends } from '../backends/backends.ts';
import type { ProxyShare } from '../proxy/state.ts';
import type { WebdavPaths } from './paths.ts';

export interface ShownSharesOptions extends ExporterTools {
  readonly webdavPaths: WebdavPaths;
  readonly rclone: () => string;
  /** Tells the proxy what is shown. Never rejects. */
  readonly tell: () => Promise<void>;
  /** Called before a share is taken away: its clients wait for it for a while. */
  readonly onGoing: (share: string) => void;
}

interface Given {
  readonly spec: ShareSpec;
  readonly mount: Mount;
}

export class ShownShares {
  readonly table: ExportTable<ProxyShare>;
  readonly #options: ShownSharesOptions;
  readonly #backends: Backends;
  /** Shares that are about to be mounted anew: until then they can be read. */
  readonly #frozen = new Set<string>();
  /** The spec and mount that each share was last shown with. */
  readonly #given = new Map<string, Given>();
  #isClosed = false;

  constructor(options: ShownSharesOptions) {
    const { clock, log, mountTable, processes, rclone, shares, webdavPaths } = options;
    this.#options = options;
    this.#backends = new Backends({
      clock,
      log,
      processes,
      paths: webdavPaths,
      rclone,
      onFreeze: (share) => this.freeze(share),
      onReady: (share) => this.addAgain(share),
    });
    this.table = createExportTable<ProxyShare>({
      clock,
      log,
      mountTable,
      shares,
      protocol: 'webdav',
      describe: (spec, mount, former) => this.#describe(spec, mount, former),
      apply: () => this.#apply(),
      appliesAll: true,
    });
  }

  get names(): readonly string[] {
    return [...this.table.entries.keys()];
  }

  /** Mounted shares that should be shown and are not. */
  get missing(): readonly string[] {
    const wanted = this.#options.shares
      .list()
      .filter(({ spec, mount }) => mount !== undefined && spec.share.protocols.includes('webdav'));
    return wanted.map(({ spec }) => spec.share.name).filter((name) => !this.table.entries.has(name));
  }

  /** Also while one is taken away for a moment, to be shown for reading. */
  get isComplete(): boolean {
    return this.missing.every((share) => this.#frozen.has(share));
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    this.#frozen.delete(spec.share.name);
    await this.table.add(spec, mount);
  }

  async remove(share: string): Promise<void> {
    this.#frozen.delete(share);
    await this.#takeAway(share);
    // Where it was being shown for reading meanwhile.
    this.#given.delete(share);
    await this.#backends.drop(share);
  }

  /**
   * Taken away, with all that its clients are sending, and shown again at once for them to read. Who wants to write
   * waits for the share as for one that is mounted anew, which is what comes next.
   */
  async freeze(share: string): Promise<void> {
    if (this.#isClosed) return;
    const given = this.#given.get(share);
    this.#frozen.add(share);
    await this.#takeAway(share);
    if (given) await this.#show(given);
  }

  /** Something else than the share is another one: what it is shown with is found out anew. */
  addAgain(share: string): void {
    const given = this.#given.get(share) ?? this.#options.shares.get(share);
    if (given?.mount) void this.#show({ spec: given.spec, mount: given.mount });
  }

  /** Another process reads from the NAS for this share. */
  readAnew(share: string): void {
    if (this.#given.has(share)) this.addAgain(share);
  }

  /** Ends what serves for them, unless it is kept for the next daemon. */
  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    await this.#backends.close(keepsRunning);
  }

  /** Ends what a former daemon has left, where WebDAV is off. */
  clear(): Promise<void> {
    return this.#backends.keepOnly(new Set());
  }

  async #describe(spec: ShareSpec, mount: Mount, former: ProxyShare | undefined): Promise<ProxyShare> {
    const { name, read_only: readOnly } = spec.share;
    const isFrozen = !readOnly && this.#frozen.has(name);
    this.#given.set(name, { spec, mount });
    // A backend that hangs or restarts stays visible to clients: they wait for it.
    const backend = await this.#backends
      .obtain(spec, mount)
      .catch((error: unknown) => (former ? former.backend : Promise.reject(error as Error)));
    return {
      name,
      path: mount.plan.mountPoint,
      readOnly: readOnly || isFrozen,
      ...(isFrozen && { isFrozen }),
      backend,
      ...(mount.plan.place !== undefined && { place: mount.plan.place }),
      ...(mount.unkeptNames && { refusedNames: mount.unkeptNames }),
    };
  }

  async #apply(): Promise<void> {
    await this.#options.tell();
    // The one of a share that is taken away for a moment stays.
    await this.#backends.keepOnly(new Set([...this.names, ...this.#frozen]));
  }

  async #takeAway(share: string): Promise<void> {
    this.#given.delete(share);
    this.#options.onGoing(share);
    await this.table.remove(share);
  }

  /** Never rejects: what is missing is tried again. */
  async #show({ spec, mount }: Given): Promise<void> {
    if (this.#isClosed) return;
    await this.table
      .add(spec, mount)
      .catch((error: unknown) =>
        this.#options.log.error({ share: spec.share.name, err: error }, 'share not shown'),
      );
  }
}
