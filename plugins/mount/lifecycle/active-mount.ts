import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { durationMs, endsWithin, logIgnored, sizeBytes } from 'mountkeeper';
import type {
  Awaitable,
  Bandwidth,
  CacheAccess,
  Logger,
  ManagedProcess,
  Mount,
  MountStats,
  PendingFiles,
  QueuedUpload,
  RefreshResult,
  ServeOptions,
} from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { askRemote } from '../rclone/ask-remote.ts';
import { forgetBoot } from '../recovery/boot-note.ts';
import { copySparse, cutTo, setTime } from '../cache/file-commands.ts';
import { treesOf } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { pendingIn } from '../cache/scan.ts';
import { markClean } from '../recovery/repair.ts';
import { createStatsReader } from '../stats/mount-stats.ts';
import { createFailedUploads } from '../stats/failed-uploads.ts';
import { endReason, UNMOUNTED } from '../rclone/error-messages.ts';
import { flushQueue } from '../rclone/flush.ts';
import { uploadQueue } from '../rclone/upload-queue.ts';
import { QueuePause } from '../rclone/upload-pause.ts';
import { freshenListings } from '../outage/listing-refresh.ts';
import { CircuitBreaker } from '../outage/circuit-breaker.ts';
import { maintain } from '../recovery/maintenance.ts';
import { OverwrittenRecords } from '../recovery/overwritten-records.ts';
import { TruncateFix } from '../recovery/truncate-fix.ts';
import { WriteBackRescue } from '../recovery/write-back-rescue.ts';
import { ReadOnlyLook } from '../cache/file-system.ts';
import { PathCheck } from './path-check.ts';
import { layerPaths } from '../layer/paths.ts';
import { foldersInUse, isRootInUse, usedPaths } from '../layer/upper/open-for-writing.ts';
import type { RunningRclone } from '../releases/renewal.ts';
import { ListingAge } from '../rclone/listing-age.ts';
import type { MountNotes } from './mount-record.ts';
import { deletedFiles, openFiles } from '../stats/open-files.ts';
import { OpenFilesLook } from '../stats/open-files-look.ts';
import { createRcClient, removeSocket } from '../rclone/control/remote-control.ts';
import type { RcAddress, RcClient } from '../rclone/control/remote-control.ts';
import type { ControlPort } from '../rclone/control/control-ports.ts';
import { createRefresher } from '../rclone/refresh.ts';
import type { Refresher } from '../rclone/refresh.ts';
import { freezeMount } from './freeze.ts';
import { serveInside } from '../rclone/serve.ts';
import { createSpaceWatch } from '../cache/space-watch.ts';
import { createTcpConnections } from '../outage/tcp-connections.ts';
import { killMount, takeDown } from './unmount.ts';
import type { MountingTools } from './tools.ts';

const LAST_LINES = 20;
const OFF_PATH_GRACE_MS = 1_000;
/** How long a freeze waits for files that are being cut. */
const LAST_CUTS_MS = 2_000;
/** How long an unmount waits for the disk of the cache. */
const CLEAN_WRITE_OUT_MS = 1_000;
const DIRTY_WRITE_OUT_MS = 4_000;
const CACHE_VIEW = fileURLToPath(new URL('../cache/view.js', import.meta.url));

/** The handle of one rclone process that serves one share. */
export class ActiveMount implements RunningRclone {
  readonly shareName: string;
  readonly plan: Mount['plan'];
  readonly pid: number;
  readonly adopted: boolean;
  readonly exited: Promise<string>;
  readonly uploadPause: QueuePause;
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
  readonly #controlPort: ControlPort;
  readonly #refresher: Refresher;
  readonly #circuitBreaker: CircuitBreaker;
  readonly #rescue: WriteBackRescue;
  readonly #truncateFix: TruncateFix;
  readonly #listings: ListingAge;
  readonly #pathCheck: PathCheck;
  readonly #readStats: (signal: AbortSignal) => Promise<MountStats>;
  readonly #unwatch: () => Promise<boolean>;
  readonly #end = new AbortController();
  #isFrozen = false;
  #isOffPath = false;
  #onFreeze: ServeOptions['onFreeze'] | undefined;

  /** `recovered`: paths of files that were dirty when the process started. */
  constructor(
    process: ManagedProcess,
    notes: MountNotes,
    tools: MountingTools,
    recovered: Awaitable<readonly string[]>,
  ) {
    this.shareName = notes.share;
    this.plan = notes.plan;
    this.rclone = notes.rclone;
    this.pid = process.pid;
    this.adopted = process.adopted;
    this.#process = process;
    this.#notes = notes;
    this.#tools = tools;
    this.#rc = createRcClient(notes.rc);
    this.#controlPort = tools.controlPorts.open(notes.rc, tools.log.child({ share: notes.share }));
    this.#refresher = createRefresher({ address: notes.rc, fs: notes.fs, end: this.#end.signal });
    const { clock } = tools;
    const trees = treesOf(notes.cacheDir);
    const log = tools.log.child({ share: notes.share });
    this.#rescue = this.#createRescue(trees, log);
    this.#circuitBreaker = this.#createCircuitBreaker(log);
    this.#listings = this.#createListingAge(trees, log);
    void this.#circuitBreaker.begin();
    const disk = new ReadOnlyLook(notes.cacheDir, tools.mountTable, clock);
    const space = createSpaceWatch({
      cacheDir: notes.cacheDir,
      minFreeBytes: () => sizeBytes(tools.config().cache.min_free_space),
      clock,
      log,
      isReadOnly: () => disk.isReadOnly(),
    });
    const failedUploads = createFailedUploads({
      clock,
      metaRoot: join(trees.meta, this.#remotePath),
      tail: (lines) => process.tail(lines),
    });
    this.#truncateFix = new TruncateFix({
      rc: this.#rc,
      trees,
      fs: notes.fs,
      log,
      cut: (name, bytes) => cutTo(join(notes.plan.mountPoint, name), bytes, tools),
    });
    const records = new OverwrittenRecords({
      rc: this.#rc,
      trees,
      fs: notes.fs,
      clock,
      log,
      saveRecord: (name, modifiedMs) => setTime(join(notes.plan.mountPoint, name), modifiedMs, tools),
    });
    const look = new OpenFilesLook(() => openFiles(this.pid, trees), clock);
    this.#readStats = createStatsReader({
      rc: this.#rc,
      clock,
      log,
      openFiles: look,
      trees,
      fs: notes.fs,
      rescue: this.#rescue,
      truncateFix: this.#truncateFix,
      records,
      space,
      failedUploads,
    });
    this.uploadPause = new QueuePause({
      shareName: notes.share,
      rc: this.#rc,
      fs: notes.fs,
      clock,
      log: tools.log,
      config: tools.config,
      pauses: tools.pauses,
      isAdopted: process.adopted,
      end: this.#end.signal,
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
    void maintain(
      {
        cacheDir: notes.cacheDir,
        rescue: this.#rescue,
        truncateFix: this.#truncateFix,
        records,
        openFiles: look,
        clock,
        log,
      },
      this.#end.signal,
    );
    // The mount has ended; who finds a stale listing waits for the remote instead.
    void freshenListings(
      recovered,
      { rc: this.#rc, fs: notes.fs, trees, clock, log },
      this.#end.signal,
    ).catch(() => undefined);
    this.#unwatch = tools.writeOut.watch({ pid: process.pid, cacheDir: notes.cacheDir });
    this.exited = process.exited.then(async (exit) => {
      this.#end.abort();
      void this.#unwatch();
      this.#rc.close();
      this.#controlPort.close();
      await removeSocket(notes.rc);
      if (this.#isOffPath) return UNMOUNTED;
      // The lines of the exit serve as well.
      return endReason(exit, await process.tail(LAST_LINES).catch(() => exit.lastLines));
    });
  }

  #createRescue(trees: CacheTrees, log: Logger): WriteBackRescue {
    const [process, notes, tools] = [this.#process, this.#notes, this.#tools];
    return new WriteBackRescue({
      cacheDir: notes.cacheDir,
      trees,
      clock: tools.clock,
      log,
      tail: (lines) => process.tail(lines),
      openFiles: () => openFiles(process.pid, trees),
      deletedFiles: () => deletedFiles(process.pid, trees),
      copy: (from, to) => copySparse(from, to, tools),
      saveRecord: (path, modifiedMs) => setTime(this.#inMount(path), modifiedMs, tools),
      restart: () => process.signal('SIGKILL'),
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
        around: (renew: () => Promise<void>) => this.around(renew),
      }),
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
      tcpConnections: nas && createTcpConnections({ pid: this.pid, nas, rcPort: rc.port, processes }),
      ask: (signal) => askRemote(this.#rc, this.#notes.fs, signal),
      onShut: () => void this.#rescue.watchClosely(() => this.#circuitBreaker.isShut, this.#end.signal),
    });
  }

  async stats(signal: AbortSignal): Promise<MountStats> {
    const stats = await this.#readStats(signal);
    const troubles = [stats.trouble, this.#pathCheck.trouble].filter((text) => text !== undefined);
    return troubles.length === 0 ? stats : { ...stats, trouble: troubles.join('; ') };
  }

  async checkRemote(signal: AbortSignal): Promise<void> {
    await this.#circuitBreaker.through(signal);
    this.#rescue.remoteAnswered();
    this.#listings.remoteAnswered();
  }

  async checkAlive(timeoutMs: number): Promise<void> {
    if (!this.#process.isAlive()) throw new Error("the mount's process has ended");
    await this.#tools.mountReader.touch(this.plan.mountPoint, { timeoutMs });
  }

  async setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void> {
    const side = (bytesPerSecond: number): string =>
      bytesPerSecond > 0 ? `${Math.max(1, Math.round(bytesPerSecond))}B` : 'off';
    await this.#rc.call(
      'core/bwlimit',
      { rate: limit.up <= 0 && limit.down <= 0 ? 'off' : `${side(limit.up)}:${side(limit.down)}` },
      signal,
    );
  }

  async flush(signal: AbortSignal): Promise<void> {
    const pausing = this.uploadPause;
    pausing.forget();
    try {
      await flushQueue(this.#rc, { fs: this.#notes.fs, signal, isPaused: () => pausing.until !== undefined });
    } catch (error) {
      // What a pause had put off, and was not reached, would wait on though nothing says so.
      pausing.release();
      throw error;
    }
  }

  sendNow(path: string, signal: AbortSignal): Promise<void> {
    return this.uploadPause.sendNow(path, signal);
  }

  uploadQueue(signal: AbortSignal): Promise<readonly QueuedUpload[]> {
    return uploadQueue(this.#rc, this.#notes.fs, { now: this.#tools.clock.now(), signal });
  }

  async freeze(): Promise<void> {
    if (this.#isFrozen) return;
    await this.#onFreeze?.();
    // What is still to be cut, could not be any more.
    await endsWithin(this.#tools.clock, LAST_CUTS_MS, this.#truncateFix.settle()).catch(
      logIgnored(this.#tools.log, 'cut files before the freeze', { share: this.shareName }),
    );
    await freezeMount(this.plan.mountPoint, this.#tools, this.#end.signal);
    this.#isFrozen = true;
  }

  async serve(options: ServeOptions): Promise<boolean> {
    this.#onFreeze = options.onFreeze;
    await serveInside(options, this.#rc, this.#notes.fs);
    return true;
  }

  async refreshDirectories(
    path: string,
    options: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult> {
    const isAll = options.recursive && path.replaceAll('/', '') === '';
    const folder = path
      .split('/')
      .filter((name) => name !== '')
      .join('/');
    return this.around(
      () => this.#listings.during(isAll, () => this.#refresher(path, options)),
      options.recursive ? undefined : folder,
    );
  }

  async unmount(): Promise<void> {
    this.#end.abort();
    await takeDown(this.#process, this.plan.mountPoint, this.#tools);
    this.#rc.close();
    const { code } = await this.#process.exited;
    const isClean = code === 0 && (await this.pending()).count === 0;
    let isOnDisk = false;
    await endsWithin(
      this.#tools.clock,
      isClean ? CLEAN_WRITE_OUT_MS : DIRTY_WRITE_OUT_MS,
      this.#unwatch().then((isDone) => (isOnDisk = isDone)),
    );
    // After a power cut, metadata of dirty files must not come back without the note that asks for a check.
    if (!isOnDisk) return;
    // A note that stays makes the next start look at more than it must.
    await forgetBoot(this.#notes.cacheDir).catch(() => undefined);
    // A mark that is missing makes the next start repair what needs none.
    if (isClean) await markClean(this.#notes.cacheDir).catch(() => undefined);
  }

  async kill(): Promise<void> {
    this.#end.abort();
    await killMount(this.#process, this.plan.mountPoint, this.#tools);
    this.#rc.close();
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
      .finally(() => this.#rc.close());
    this.#controlPort.close();
    this.#end.abort();
    void this.#unwatch();
    this.#process.release();
  }

  /** For a file of the cache. */
  #inMount(path: string): string {
    const root = this.#remotePath.replaceAll(/^\/+|(?<!\/)\/+$/g, '');
    return join(
      this.plan.mountPoint,
      root !== '' && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path,
    );
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

  get #remotePath(): string {
    return this.#notes.fs.slice(this.#notes.fs.indexOf(':') + 1);
  }
}
