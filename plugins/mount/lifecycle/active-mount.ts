import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { durationMs, endsWithin, sizeBytes } from 'mountkeeper';
import type {
  Bandwidth,
  CacheAccess,
  Logger,
  ManagedProcess,
  Mount,
  MountStats,
  PendingFiles,
  RefreshResult,
  RemoteFailure,
} from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { askRemote } from '../rclone/ask-remote.ts';
import { forgetBoot } from '../recovery/boot-note.ts';
import { WRITE_OUT_MS } from '../recovery/forget-when-still.ts';
import { treesOf } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { reserveWhenThereIsRoom } from '../cache/reserve.ts';
import { pendingIn } from '../cache/scan.ts';
import type { WatchedWriter } from '../recovery/cache-sync.ts';
import { createStatsReader } from '../stats/mount-stats.ts';
import type { StatsReader } from '../stats/mount-stats.ts';
import { endReason, UNMOUNTED } from '../rclone/error-messages.ts';
import { CircuitBreaker } from '../outage/circuit-breaker.ts';
import { ReadOnlyLook } from '../cache/file-system.ts';
import { RootCheck } from '../outage/root-check.ts';
import { RootNames } from '../outage/root-names.ts';
import { PathCheck } from './path-check.ts';
import { layerPaths, stackPaths } from '../layer/paths.ts';
import { foldersInUse, isRootInUse, usedPaths } from '../layer/upper/open-for-writing.ts';
import type { RunningRclone } from '../releases/renewal.ts';
import { ListingAge } from '../rclone/listing-age.ts';
import type { Outdated } from '../rclone/remote-files.ts';
import type { MountNotes, MountPlace } from './mount-record.ts';
import { openFiles } from '../stats/open-files.ts';
import { writtenBytes } from '../stats/written-bytes.ts';
import { controlAnswers, createRcClient, removeSocket } from '../rclone/control/remote-control.ts';
import type { RcAddress, RcClient } from '../rclone/control/remote-control.ts';
import type { ControlPort } from '../rclone/control/control-ports.ts';
import { createRefresher } from '../rclone/refresh.ts';
import type { Refresher } from '../rclone/refresh.ts';
import { freezeMount } from './freeze.ts';
import { flagsOf, mayRun } from './mount-flags.ts';
import { clearStack, prepareStack } from '../layer/stack.ts';
import { createSpaceWatch } from '../cache/space-watch.ts';
import { createTcpConnections } from '../outage/tcp-connections.ts';
import { killMount, takeDown } from './unmount.ts';
import type { MountingTools } from './tools.ts';

/** In the share's folder of the cache. */
const ROOT_NAMES = 'root-names.json';
const LAST_LINES = 20;
const OFF_PATH_GRACE_MS = 1_000;
const CACHE_VIEW = fileURLToPath(new URL('../cache/view.js', import.meta.url));

/**
 * The handle of one rclone process that reads for one share: below an overlay, or mounted where its users see it. A
 * former version may have left one that takes writes, too: it is frozen, and taken down once nothing waits in it.
 */
export class ActiveMount implements RunningRclone {
  readonly shareName: string;
  readonly plan: Mount['plan'];
  readonly pid: number;
  readonly adopted: boolean;
  readonly exited: Promise<string>;
  /** True when a former daemon had frozen it. */
  isFrozen = false;
  /** For a mount below an overlay: wraps each change of what the mount shows, in one folder or anywhere, or rejects. */
  around: <T>(change: () => Promise<T>, folder?: string) => Promise<T> = (change) => change();
  /** What its rclone says of its version; undefined for one that an older daemon has started. */
  readonly rclone: string | undefined;
  readonly #process: ManagedProcess;
  readonly #notes: MountNotes;
  readonly #tools: MountingTools;
  readonly #rc: RcClient;
  /** Of its own: a long listing keeps no figures waiting. */
  readonly #rootRc: RcClient;
  readonly #controlPort: ControlPort;
  readonly #refresher: Refresher;
  readonly #circuitBreaker: CircuitBreaker;
  readonly #listings: ListingAge;
  /** Its folder on the remote. */
  readonly root: RootCheck;
  readonly #pathCheck: PathCheck;
  readonly #readStats: StatsReader;
  readonly #written: WatchedWriter;
  readonly #end = new AbortController();
  #isFrozen = false;
  #isOffPath = false;

  constructor(process: ManagedProcess, notes: MountNotes, tools: MountingTools) {
    this.shareName = notes.share;
    this.plan = notes.plan;
    this.rclone = notes.rclone;
    this.pid = process.pid;
    this.adopted = process.adopted;
    this.#process = process;
    this.#notes = notes;
    this.#tools = tools;
    this.#rc = createRcClient(notes.rc);
    this.#rootRc = createRcClient(notes.rc);
    this.#controlPort = tools.controlPorts.open(notes.rc, tools.log.child({ share: notes.share }));
    this.#refresher = createRefresher({
      address: notes.rc,
      fs: notes.fs,
      end: this.#end.signal,
      around: (refresh, folder) =>
        this.around(() => this.dropping({ folders: [], trees: [folder ?? ''] }, refresh), folder),
    });
    const { clock } = tools;
    const trees = treesOf(notes.cacheDir);
    const log = tools.log.child({ share: notes.share });
    this.#circuitBreaker = this.#createCircuitBreaker(log);
    this.#listings = this.#createListingAge(trees, log);
    this.root = this.#createRootCheck(log);
    void this.#circuitBreaker.begin();
    const disk = new ReadOnlyLook(notes.cacheDir, tools.mountTable, clock);
    const space = createSpaceWatch({
      cacheDir: notes.cacheDir,
      minFreeBytes: () => sizeBytes(tools.config().cache.min_free_space),
      clock,
      log,
      isReadOnly: () => disk.isReadOnly(),
    });
    this.#readStats = createStatsReader({
      rc: this.#rc,
      clock,
      openFiles: () => openFiles(this.pid, trees),
      fs: notes.fs,
      space,
    });
    this.#pathCheck = new PathCheck({
      mountPoint: this.plan.mountPoint,
      device: deviceName(notes.share),
      mountTable: tools.mountTable,
      isThere: notes.overlay === undefined,
      onLost: () => this.#endOffPath(),
      log,
    });
    void this.#pathCheck.run(clock, this.#end.signal);
    void reserveWhenThereIsRoom(notes.cacheDir, clock, this.#end.signal);
    this.#written = tools.writeOut.watch({
      cacheDir: notes.cacheDir,
      written: () => writtenBytes(process.pid),
    });
    this.exited = process.exited.then(async (exit) => {
      this.#end.abort();
      void this.#written.leave();
      this.#closeControls();
      this.#controlPort.close();
      await removeSocket(notes.rc);
      if (this.#isOffPath) return UNMOUNTED;
      // The lines of the exit serve as well.
      return endReason(exit, await process.tail(LAST_LINES).catch(() => exit.lastLines));
    });
  }

  #createListingAge(trees: CacheTrees, log: Logger): ListingAge {
    const { cacheDir, overlay, rc: address, fs } = this.#notes;
    const { clock, config } = this.#tools;
    return new ListingAge({
      address,
      fs,
      keptRoots: [
        join(trees.data, this.#remotePath),
        // A folder of the overlay is unusable without its listing below, with all that users wrote in it.
        ...(overlay ? [layerPaths(cacheDir).upper] : []),
      ],
      dirCacheMs: durationMs(config().mount.dir_cache_time),
      isNew: !this.adopted,
      clock,
      log,
      end: this.#end.signal,
      ...(overlay && {
        inUse: () => foldersInUse(overlay.mountPoint),
        around: (renew) => this.around(renew),
      }),
    });
  }

  #createRootCheck(log: Logger): RootCheck {
    const { cacheDir, fs, plan, share } = this.#notes;
    const { clock } = this.#tools;
    return new RootCheck({
      shareName: share,
      rc: this.#rootRc,
      fs,
      names: new RootNames({ file: join(cacheDir, ROOT_NAMES), identity: plan.identity, clock, log }),
      clock,
      log,
      onBack: () => this.#listings.distrust(),
    });
  }

  #createCircuitBreaker(log: Logger): CircuitBreaker {
    const { nas, rc } = this.#notes;
    const { clock, connections, processes } = this.#tools;
    return new CircuitBreaker({
      rc: this.#rc,
      clock,
      log,
      end: this.#end.signal,
      monitor: () => nas && connections()?.at(nas),
      tcpConnections:
        nas &&
        createTcpConnections({
          pid: this.pid,
          nas,
          rcPort: rc.port,
          processes,
        }),
      ask: (signal) => askRemote(this.#rc, this.#notes.fs, signal),
    });
  }

  async stats(signal: AbortSignal, isBusy = false): Promise<MountStats> {
    const stats = await this.#readStats(signal, isBusy);
    const troubles = [stats.trouble, this.#pathCheck.trouble].filter((text) => text !== undefined);
    return troubles.length === 0 ? stats : { ...stats, trouble: troubles.join('; ') };
  }

  async checkRemote(signal: AbortSignal): Promise<void> {
    try {
      await this.#circuitBreaker.through(signal);
    } catch (error) {
      this.root.silent();
      throw error;
    }
    this.root.answered();
    const { trouble } = this.root;
    if (trouble !== undefined)
      throw Object.assign(new Error(trouble), { remote: 'answers' } as Pick<RemoteFailure, 'remote'>);
    this.#listings.remoteAnswered();
  }

  /** The NAS is away, and its rclone does not even dial. */
  get isShut(): boolean {
    return this.#circuitBreaker.isShut;
  }

  async checkAlive(timeoutMs: number): Promise<void> {
    if (!this.#process.isAlive()) throw new Error("the mount's process has ended");
    await this.#tools.mountReader.touch(this.plan.mountPoint, { timeoutMs });
  }

  /** An rclone that was started without its remote has no listings, and nobody reaches its cache without them. */
  get isUnreadable(): boolean {
    return !this.adopted && !this.root.hasAnswered;
  }

  /** The folders with cached files are listed at once when the remote has answered, else at its first answer. */
  listCached(): void {
    if (this.root.hasAnswered && this.root.trouble === undefined) this.#listings.remoteAnswered();
  }

  /** Runs what has its rclone drop these listings, or read them anew. */
  dropping<T>(outdated: Outdated, drop: () => Promise<T>): Promise<T> {
    return this.#listings.changing(outdated, drop);
  }

  get hasUnreadFolders(): boolean {
    return this.#listings.hasUnread;
  }

  get isRootLost(): boolean {
    return this.root.trouble !== undefined || this.#listings.isDistrusted;
  }

  acceptRemote(): void {
    this.root.accept();
  }

  /** Whether its remote control answers before the signal aborts. */
  controlAnswers(signal: AbortSignal): Promise<boolean> {
    return controlAnswers(this.#notes.rc, signal);
  }

  async setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void> {
    const side = (bytesPerSecond: number): string =>
      bytesPerSecond > 0 ? `${Math.max(1, Math.round(bytesPerSecond))}B` : 'off';
    await this.#rc.call(
      'core/bwlimit',
      {
        rate: limit.up <= 0 && limit.down <= 0 ? 'off' : `${side(limit.up)}:${side(limit.down)}`,
      },
      signal,
    );
  }

  /** What a former version's rclone still has to upload goes by itself. */
  flush(): Promise<void> {
    return Promise.resolve();
  }

  async freeze(): Promise<void> {
    const { mountPoint } = this.plan;
    // A plain user's share, which is read-only: that user could not make it so either.
    if (this.#isFrozen || (await this.#tools.mountTable.find(mountPoint))?.readOnly === true) return;
    const flags = flagsOf(mayRun(this.shareName, this.#tools));
    // Of a former version that had no write layer.
    const stack = stackPaths(await realpath(this.#tools.paths.stateDir), this.shareName);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) await prepareStack(stack, this.#tools);
    try {
      await freezeMount({ mountPoint, flags, staging: stack.staging }, this.#tools, this.#end.signal);
    } finally {
      if (isRoot) await clearStack(stack, this.#tools);
    }
    this.#isFrozen = true;
  }

  async refreshDirectories(
    path: string,
    options: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult> {
    const folder = path
      .split('/')
      .filter((name) => name !== '')
      .join('/');
    const lost = await this.root.admit(options.signal).then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    options.signal.throwIfAborted();
    if (lost) return { ok: 0, failed: [{ path: folder, reason: lost.message }] };
    const result = await this.#listings.during(options.recursive && folder === '', () =>
      this.#refresher(folder, options),
    );
    if (result.failed.length > 0) this.root.suspect();
    return result;
  }

  async unmount(): Promise<void> {
    this.#end.abort();
    await takeDown(this.#process, this.#place, this.#tools);
    this.#closeControls();
    await this.root.saved();
    await this.#process.exited;
    // Programs may still write into the upper folder: the share's own mount sees to the note.
    if (this.#notes.overlay) return;
    let isOnDisk = false;
    await endsWithin(
      this.#tools.clock,
      WRITE_OUT_MS,
      this.#written.leave().then((isDone) => (isOnDisk = isDone)),
    );
    // A note that stays makes the next start look at more than it must.
    if (isOnDisk) await forgetBoot(this.#notes.cacheDir).catch(() => undefined);
  }

  async kill(): Promise<void> {
    this.#end.abort();
    await killMount(this.#process, this.#place, this.#tools);
    this.#closeControls();
    await this.root.saved();
  }

  #closeControls(): void {
    this.#rc.close();
    this.#rootRc.close();
  }

  cacheAccess(): CacheAccess {
    const {
      rc: { socket, ...rc },
      fs,
      cacheDir,
    } = this.#notes;
    return {
      module: CACHE_VIEW,
      parameters: {
        ...rc,
        ...(socket !== undefined && { socket }),
        fs,
        cacheDir,
        remotePath: this.#remotePath,
        pid: this.pid,
      },
    };
  }

  async isIdle(): Promise<boolean> {
    return (await openFiles(this.pid, treesOf(this.#notes.cacheDir))).open === 0;
  }

  async isFree(): Promise<boolean> {
    const { mountPoint } = this.plan;
    return (await this.pending()).count === 0 && !isRootInUse(mountPoint) && usedPaths(mountPoint).size === 0;
  }

  pending(): Promise<PendingFiles> {
    return pendingIn(this.#notes.cacheDir, this.#remotePath);
  }

  /**
   * The mount was removed from its path, so nobody can reach it; its dirty files are uploaded by the next
   * mount.
   */
  #endOffPath(): void {
    if (this.#end.signal.aborted) return;
    this.#isOffPath = true;
    void this.#process.stop({ graceMs: OFF_PATH_GRACE_MS });
  }

  release(): void {
    // Requested before anything ends: nobody else would open the circuit breaker again until the next
    // daemon runs.
    void this.#circuitBreaker
      .open()
      .catch(() => undefined)
      .finally(() => this.#closeControls());
    this.#controlPort.close();
    this.#end.abort();
    void this.#written.leave();
    this.#process.release();
  }

  get cacheRoot(): string {
    return dirname(this.#notes.cacheDir);
  }

  get rcPort(): number {
    return this.#controlPort.port;
  }

  /** Address of its remote control. */
  get address(): RcAddress {
    return this.#notes.rc;
  }

  get #place(): MountPlace {
    return { share: this.shareName, mountPoint: this.plan.mountPoint };
  }

  get #remotePath(): string {
    return this.#notes.fs.slice(this.#notes.fs.indexOf(':') + 1);
  }
}
