/**
 * The handle of a share with a write layer: rclone for reading, bindfs on top of it, an overlay that users
 * see, an uploader for the upper folder. It lives as long as bindfs does; the rclone below may be replaced.
 */
import { dirname, join } from 'node:path';
import { UNMOUNTED } from '../rclone/error-messages.ts';
import type {
  Bandwidth,
  CacheAccess,
  HandleFolder,
  ManagedProcess,
  MountPlan,
  MountStats,
  PendingFiles,
  QueuedUpload,
  RefreshResult,
  ShareUploads,
  UnkeptNames,
  UploadFigures,
  UploadPause,
  Uploader,
} from 'mountkeeper';
import { PathCheck } from '../lifecycle/path-check.ts';
import type { ActiveMount } from '../lifecycle/active-mount.ts';
import { unkeptNames } from '../rclone/kept-names.ts';
import { RcloneFiles } from '../rclone/remote-files.ts';
import type { Outdated } from '../rclone/remote-files.ts';
import { clearMountPoint } from '../lifecycle/mount-point.ts';
import { freezeMount } from '../lifecycle/freeze.ts';
import { LeadsElsewhere } from '../lifecycle/mount-plan.ts';
import { asSoleUser } from '../lifecycle/sole-use.ts';
import type { MountingTools } from '../lifecycle/tools.ts';
import { noteUnmounted } from '../recovery/after-unmount.ts';
import type { WatchedWriter } from '../recovery/cache-sync.ts';
import { settleOrder } from '../recovery/kept-order.ts';
import { createMeter } from '../stats/meter.ts';
import { unsentBytes } from '../stats/unsent-bytes.ts';
import {
  isCached,
  NOTHING_READ,
  pauseOf,
  queuedFiles,
  remotePathOf,
  uploadRules,
  withUploads,
} from './layer-figures.ts';
import { KeptHandles } from './bindfs/handle-folder.ts';
import { Hold } from './bindfs/hold.ts';
import { endBindfs } from './bindfs/start.ts';
import { HeldVersions } from './held-versions.ts';
import { limitAnew } from './limit-anew.ts';
import { activeFolders } from './upper/active-folders.ts';
import { LocalLayer } from './upper/local-layer.ts';
import { listBelow, lookBelow } from './upper/look-below.ts';
import { LowerSupervisor } from './lower-supervisor.ts';
import { NameDropper } from './name-dropper.ts';
import { flagsOf, overlaySource } from './overlay.ts';
import type { LayerPaths, StackPaths } from './paths.ts';
import { RemoteBelow } from './remote-below.ts';
import { Renewal } from './renewal.ts';
import type { RunningRclone } from '../releases/renewal.ts';
import { Health, NOT_PASSED_ON } from './health/health.ts';
import { usedPaths } from './upper/open-for-writing.ts';
import { clearStack } from './stack.ts';

const FORGET_MS = 30_000;
const LOOK_MS = 30_000;
/** Moving a folder on a remote may take long when the backend does it file by file. */
const HOLD_MS = 30_000;
const SETTLE_MS = 20_000;
const MOST_UNSETTLED = 3;
/** A stop waits a minute for an unmount; one that takes longer may be overtaken by the next mount. */
const NOTE_WITHIN_MS = 30_000;

/** Measured: below the overlay, a dead mount answers each name and each listing with an error. */
const UNTIL_THEN =
  'until then its folders cannot be listed and nothing new can be made in them; what was written here and waits in ' +
  'its top folder, and the folders that were made here, can be used';

export interface LayeredMountOptions {
  readonly shareName: string;
  readonly plan: MountPlan;
  /** A former daemon left it. */
  readonly adopted: boolean;
  readonly bindfs: ManagedProcess;
  readonly paths: LayerPaths;
  readonly stack: StackPaths;
  readonly cacheDir: string;
  /** The remote in rclone's notation. */
  readonly fs: string;
  /** The backend's name in rclone. */
  readonly type: string;
  readonly uploader: Uploader;
  readonly exec: boolean;
  readonly readOnly: boolean;
  /** Starts an rclone and moves it to its place. `before` runs when it answers and nobody sees it yet. */
  readonly start: (
    signal: AbortSignal,
    before: (lower: ActiveMount) => Promise<void>,
  ) => Promise<ActiveMount>;
  /** An rclone that is already in its place. */
  readonly lower?: ActiveMount | undefined;
  readonly tools: MountingTools;
}

export class LayeredMount implements RunningRclone {
  readonly shareName: string;
  readonly plan: MountPlan;
  readonly adopted: boolean;
  readonly exited: Promise<string>;
  readonly uploadsEnded: Promise<void>;
  #endUploads: () => void = () => undefined;
  /** True when a former daemon had frozen it. */
  isFrozen = false;
  readonly #options: LayeredMountOptions;
  readonly #supervisor: LowerSupervisor;
  readonly #remote: RemoteBelow;
  readonly #renewal: Renewal;
  readonly #names: NameDropper;
  readonly #held: HeldVersions;
  readonly #uploads: ShareUploads;
  readonly #written: WatchedWriter;
  readonly #pathCheck: PathCheck;
  readonly #handles: KeptHandles;
  readonly #hold: Hold;
  readonly #health: Health;
  readonly uploadPause: UploadPause;
  readonly #end = new AbortController();
  #latest: ActiveMount | undefined;
  #limit: Bandwidth | undefined;
  readonly #uploadMeter: (bytes: number) => number;
  /** Of rclone's own cache, as last seen. */
  #cacheBytes = 0;
  #isFrozen = false;
  /** How many rclones in a row were started without settling the marks of moved folders. */
  #unsettled = 0;
  #lose: (reason: string) => void = () => undefined;

  constructor(options: LayeredMountOptions) {
    const { bindfs, lower, paths, plan, shareName, tools } = options;
    const { clock, log, mountTable, processes } = tools;
    this.#options = options;
    this.shareName = shareName;
    this.plan = plan;
    this.adopted = options.adopted;
    this.#uploadMeter = createMeter(clock);
    this.#hold = new Hold({ shareName, bindfs, adopted: options.adopted, log });
    this.#supervisor = new LowerSupervisor({
      shareName,
      start: (signal) => this.#startLower(signal),
      clock,
      log,
      onUp: (living) => this.#useLower(living),
      onDown: (wasSettled) => {
        if (wasSettled) this.#hold.begin();
        this.#remote.use(undefined);
        void this.#health.lowerIsDown();
      },
    });
    this.#health = new Health({
      shareName,
      mountPoint: plan.mountPoint,
      stack: options.stack,
      bindfs,
      hold: this.#hold,
      supervisor: this.#supervisor,
      tools,
      end: this.#end.signal,
    });
    this.#remote = new RemoteBelow(options.type, () => this.#supervisor.problem);
    this.#names = new NameDropper({
      shareName,
      mountPoint: plan.mountPoint,
      upper: paths.upper,
      flags: options,
      tools,
      isOver: () => this.#isFrozen || this.isFrozen || this.#end.signal.aborted,
    });
    const layer = new LocalLayer({
      shareName,
      paths,
      lower: options.stack.place,
      mountPoint: plan.mountPoint,
      processes,
      clock,
      log,
      forget: (folders, change) => this.#forget(folders, change),
      onDisk: () => settleOrder(options.cacheDir, tools.writeOut),
      dropNames: () => this.#names.drop(),
      moveAside: (moves, begin) => this.#names.afterMoves(moves, begin),
      holdCalls: () => this.#hold.calls(),
      holdForOne: () => this.#hold.callsForOne(),
      settleCalls: () => this.#hold.settle(clock),
      versions: {
        held: (path, bornMs) => this.#held.of(path, bornMs),
        heldSinceMs: () => this.#held.sinceMs,
        learnt: (beforeMs) => this.#held.learnt(beforeMs),
        shown: (paths) => this.#held.shown(paths),
        overNothing: (folders) => this.#held.overNothing(folders),
      },
      precisionMs: () => this.#remote.precisionMs,
      isCached: (path, bytes) => isCached(options.cacheDir, join(remotePathOf(options.fs), path), bytes),
    });
    this.#held = new HeldVersions({
      pid: bindfs.pid,
      place: options.stack.place,
      // Not through bindfs: rclone answers from memory, and many names are asked for.
      below: (files, within) => lookBelow(files, { root: options.stack.place, processes, ...within }),
      listBelow: (folders, within) => listBelow(folders, { root: options.stack.place, processes, ...within }),
      active: () => activeFolders({ mountPoint: plan.mountPoint, upper: paths.upper }),
      clock,
      log: tools.log,
    });
    this.#renewal = new Renewal({
      clock,
      end: this.#end.signal,
      read: (folders, signal) => this.#readListings(layer, folders, signal),
    });
    let changes = 0;
    this.#written = tools.writeOut.watch({ cacheDir: options.cacheDir, written: () => changes });
    this.#uploads = options.uploader.start({
      layer,
      remote: this.#remote,
      onChange: () => {
        changes += 1;
        this.#written.wrote();
      },
      ...uploadRules(tools, () => this.#cacheBytes),
    });
    this.uploadPause = pauseOf(this.#uploads);
    this.uploadsEnded = new Promise((resolve) => (this.#endUploads = resolve));
    const lost = new Promise<string>((resolve) => (this.#lose = resolve));
    this.#pathCheck = new PathCheck({
      mountPoint: plan.mountPoint,
      device: overlaySource(shareName),
      mountTable,
      isThere: true,
      onLost: () => this.#lose(UNMOUNTED),
      log: tools.log,
    });
    void this.#pathCheck.run(clock, this.#end.signal);
    this.#handles = new KeptHandles({
      shareName,
      mountPoint: plan.mountPoint,
      flags: options,
      place: options.stack.handles,
      tools,
    });
    this.exited = Promise.race([lost, bindfs.exited.then(() => NOT_PASSED_ON)]).then((reason) => {
      this.#end.abort();
      // Whoever adopted it too late does not unmount it: its rclones would be in the way of the next mount's.
      void this.#supervisor.stop();
      // Nobody waits for that before servers stop showing what is there instead; `kill` waits.
      void this.#stopUploads();
      return reason;
    });
    if (lower) this.#supervisor.adopt(lower);
    else this.#supervisor.begin();
  }

  /** The process id of bindfs, which lives as long as the share is mounted; rclone may be replaced. */
  get pid(): number {
    return this.#options.bindfs.pid;
  }

  get readerPid(): number | undefined {
    return this.#latest?.pid;
  }

  get isRootLost(): boolean {
    return this.#latest?.isRootLost === true;
  }

  get isUnreadable(): boolean {
    return this.#supervisor.living?.isUnreadable ?? this.#supervisor.isFailing;
  }

  get hasUnreadFolders(): boolean {
    return this.#supervisor.living?.hasUnreadFolders ?? true;
  }

  acceptRemote(): void {
    this.#supervisor.living?.acceptRemote();
  }

  /** The remote control port of the latest rclone. */
  get rcPort(): number {
    return this.#latest?.rcPort ?? 0;
  }

  get rclone(): string | undefined {
    return this.#supervisor.living?.rclone;
  }

  async isIdle(): Promise<boolean> {
    return (await this.#supervisor.living?.isIdle()) === true;
  }

  async isFree(): Promise<boolean> {
    return (await this.pending()).count === 0 && usedPaths(this.plan.mountPoint).size === 0;
  }

  renewRclone(): void {
    const lower = this.#supervisor.living;
    if (lower) this.#supervisor.replace(lower, 'another rclone is in use now');
  }

  /**
   * Rejects while bindfs is stopped by somebody else, or hangs, too: what is on the NAS alone cannot be read then.
   */
  async stats(signal: AbortSignal): Promise<MountStats> {
    if (this.#health.isStopped) throw new Error('bindfs below the share is stopped');
    // What waits goes up past bindfs: a drain goes on without it.
    const isDraining = this.#isFrozen || this.isFrozen;
    if (!isDraining && this.#health.problem !== undefined) throw new Error(this.#health.problem);
    const [reading, looked] = await Promise.all([
      this.#reading(signal),
      this.#uploads.look(signal).catch((error: unknown) => error as Error),
    ]);
    // A disk that takes nothing is why what was seen cannot be noted.
    if (looked instanceof Error) throw reading.trouble === undefined ? looked : new Error(reading.trouble);
    const waiting = looked;
    this.#health.controlAnswered();
    this.#cacheBytes = reading.cacheBytes;
    return withUploads(reading, waiting, {
      inTheWay: this.#pathCheck.trouble,
      uploadSpeed: this.#uploadMeter(waiting.uploadedBytes - this.#unsentBytes(waiting)),
    });
  }

  checkRemote(signal: AbortSignal): Promise<void> {
    return this.#health.checkRemote(signal);
  }

  checkAlive(timeoutMs: number): Promise<void> {
    return this.#health.checkAlive(timeoutMs);
  }

  async setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void> {
    this.#limit = limit;
    await this.#supervisor.living?.setBandwidth(limit, signal);
  }

  async freeze(): Promise<void> {
    if (this.#isFrozen) return;
    // Set before anything is awaited, because dropping names would make the overlay writable again.
    this.#isFrozen = true;
    try {
      await this.#names.dropped();
      const { stack, tools } = this.#options;
      const flags = flagsOf({ ...this.#options, readOnly: true });
      const { mountPoint } = this.plan;
      await freezeMount({ mountPoint, flags, staging: stack.staging }, tools, this.#end.signal);
    } catch (error) {
      this.#isFrozen = false;
      throw error;
    }
  }

  flush(): Promise<void> {
    this.#uploads.flush();
    return Promise.resolve();
  }

  async refreshDirectories(
    path: string,
    options: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult> {
    const lower = await this.#supervisor.obtain(options.signal);
    const result = await lower.refreshDirectories(path, options);
    if (result.ok === 0) return result;
    this.#uploads.refreshed(
      path
        .split('/')
        .filter((name) => name !== '')
        .join('/'),
      options.recursive,
    );
    return result;
  }

  get unkeptNames(): readonly UnkeptNames[] {
    return unkeptNames(this.#options.type);
  }

  handleFolder(): Promise<HandleFolder> {
    return this.#handles.folder();
  }

  async unmount(): Promise<void> {
    const { tools, uploader } = this.#options;
    const untilMs = tools.clock.monotonic() + NOTE_WITHIN_MS;
    this.#end.abort();
    this.#hold.close();
    const lower = await this.#supervisor.stop();
    await this.#stopUploads();
    await eachAnyway(
      () => this.#handles.end(),
      () => this.#takeOffPath(),
      () => endBindfs(this.#options.bindfs),
      async () => lower?.unmount(),
      () => clearStack(this.#options.stack, this.#options.tools),
    );
    await noteUnmounted(this.#options, { uploader, untilMs }, tools);
  }

  /** rclone first: calls that wait in the overlay end with it. */
  async kill(): Promise<void> {
    this.#end.abort();
    this.#hold.close();
    const stopped = this.#stopUploads();
    const lower = await this.#supervisor.stop();
    await eachAnyway(
      async () => lower?.kill(),
      () => endBindfs(this.#options.bindfs),
      () => this.#handles.end(),
      () => this.#takeOffPath(),
      () => clearStack(this.#options.stack, this.#options.tools),
    );
    await stopped;
  }

  /** With what was written a moment ago: an idle share is looked at every few seconds only. */
  async uploadQueue(signal: AbortSignal): Promise<readonly QueuedUpload[]> {
    const { log } = this.#options.tools;
    await this.#uploads
      .look(signal)
      .catch((err: unknown) => log.debug({ share: this.shareName, err }, 'upper folder not looked at'));
    return queuedFiles(this.#uploads.queue());
  }

  /** Undefined while no rclone has ever been up below. */
  cacheAccess(): CacheAccess | undefined {
    if (!this.#latest) return undefined;
    const { module, parameters } = this.#latest.cacheAccess();
    return {
      module,
      parameters: { ...parameters, upper: this.#options.paths.upper },
    };
  }

  /** Once bindfs, which has the share's lock, has ended, another daemon may have the cache: rejects then. */
  pending(): Promise<PendingFiles> {
    const { bindfs, cacheDir, paths, tools, uploader } = this.#options;
    const look = (): Promise<PendingFiles> => uploader.waiting(paths.upper, paths.records);
    return bindfs.isAlive() ? look() : asSoleUser(cacheDir, tools.processes, look);
  }

  release(): void {
    this.#end.abort();
    this.#hold.close();
    void this.#stopUploads();
    void this.#supervisor.stop().then((lower) => lower?.release());
    this.#options.bindfs.release();
    this.#handles.release();
  }

  get cacheRoot(): string {
    return dirname(this.#options.cacheDir);
  }

  /** One that would lead elsewhere is not started; where nothing waits, the share is to be mounted from there. */
  async #startLower(signal: AbortSignal): Promise<ActiveMount> {
    const { log, onElsewhere } = this.#options.tools;
    try {
      return await this.#options.start(signal, (fresh) => this.#settleMoves(fresh, signal));
    } catch (error) {
      const isFree =
        error instanceof LeadsElsewhere &&
        (await this.isFree().catch((cause: unknown) => {
          log.warn({ share: this.shareName, err: cause }, 'whether files wait is not known');
          return false;
        }));
      if (isFree && !signal.aborted) onElsewhere?.(this.shareName);
      throw error;
    }
  }

  /** A new rclone has no bandwidth limit yet, and the kernel still caches what the former one answered. */
  #useLower(lower: ActiveMount): void {
    const { tools } = this.#options;
    this.#held.begin();
    this.#hold.end();
    const isOther = this.#latest !== undefined;
    this.#latest = lower;
    if (isOther) tools.onReplaced?.(this.shareName, this.#supervisor.problem);
    this.#remote.use(this.#filesOf(lower));
    lower.around = (change, folder) => this.#changing(change, folder);
    lower.listCached();
    void limitAnew(() => (this.#supervisor.living === lower ? this.#limit : undefined), {
      shareName: this.shareName,
      lower,
      tools,
      end: this.#end.signal,
    });
    void this.#names.drop();
  }

  #filesOf(lower: ActiveMount): RcloneFiles {
    const { address, root } = lower;
    const { fs, tools, type } = this.#options;
    return new RcloneFiles({
      address,
      fs,
      type,
      clock: tools.clock,
      root,
      around: (folders, forget) => this.#held.during(folders, forget),
      dropping: (outdated, drop) => lower.dropping(outdated, drop),
      onForget: (folders) => this.#renewal.forgotten(folders),
    });
  }

  async #readListings(layer: LocalLayer, folders: readonly string[], signal: AbortSignal): Promise<void> {
    await layer.readListings(folders, signal);
    // Names that did not exist may exist now.
    await this.#names.drop();
  }

  /**
   * A folder that the former rclone moved on the remote, or was about to move, would look empty below the
   * new one.
   */
  async #settleMoves(fresh: ActiveMount, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options.tools;
    this.#remote.use(this.#filesOf(fresh));
    try {
      await this.#uploads.settleMoves(clock.deadline(SETTLE_MS, signal));
      this.#unsettled = 0;
    } catch (error) {
      this.#unsettled += 1;
      // Waiting for ever without the remote would be worse: the marks are updated on the living overlay.
      if (this.#unsettled < MOST_UNSETTLED) throw error;
      log.error(
        { share: this.shareName, err: error },
        'marks of moved folders could not be updated; these folders may look empty for a moment',
      );
    }
  }

  /**
   * Runs a change of the lower layer, of one folder or anywhere. First the uploader must record what users
   * changed in the versions that they see now, and no move of a folder on the remote may be in progress.
   */
  async #changing<T>(change: () => Promise<T>, folder?: string): Promise<T> {
    const { clock } = this.#options.tools;
    const release = await this.#uploads.holdMoves(clock.deadline(HOLD_MS, this.#end.signal));
    try {
      await this.#look({ isNew: folder === undefined });
      return await this.#held.during(folder === undefined ? 'anywhere' : [folder], change);
    } finally {
      await this.#names.drop();
      release();
    }
  }

  async #reading(signal: AbortSignal): Promise<MountStats> {
    const lower = this.#supervisor.living;
    const isBusy = (this.#uploads.figures?.uploading ?? 0) > 0;
    const reading = await (lower?.stats(signal, isBusy) ?? { ...NOTHING_READ, cacheBytes: this.#cacheBytes });
    if (lower && !this.isUnreadable) return reading;
    const why = lower ? 'it has not answered yet' : this.#supervisor.problem;
    const unread = `nothing can be read from the remote just now (${why})`;
    const troubles = [reading.trouble, unread, ...(this.isUnreadable ? [UNTIL_THEN] : [])];
    return { ...reading, trouble: troubles.filter((text) => text !== undefined).join('; ') };
  }

  #unsentBytes({ uploading }: UploadFigures): number {
    const pid = this.readerPid;
    return uploading === 0 || pid === undefined ? 0 : unsentBytes(pid);
  }

  /** The uploader records what users changed in the versions that they see, before they see others. */
  async #look(how: { readonly isNew?: boolean } = {}): Promise<void> {
    await this.#uploads.look(this.#options.tools.clock.deadline(LOOK_MS, this.#end.signal), how);
  }

  async #forget(folders: readonly string[], change?: () => Promise<Outdated>): Promise<void> {
    if (folders.length === 0) return;
    await this.#look();
    await this.#remote.forget(folders, {
      signal: this.#options.tools.clock.deadline(FORGET_MS, this.#end.signal),
      change,
    });
  }

  async #takeOffPath(): Promise<void> {
    // Also removes the cover that refuses new writes.
    await clearMountPoint(this.plan.mountPoint, this.#options.tools, {
      share: this.shareName,
      active: 'detach',
    });
  }

  /** Files that wait stay in the upper folder, so a failure here loses nothing. */
  async #stopUploads(): Promise<void> {
    void this.#written.leave();
    await this.#uploads
      .stop()
      .catch((error: unknown) =>
        this.#options.tools.log.warn({ share: this.shareName, err: error }, 'uploads not ended'),
      );
    this.#endUploads();
    this.#remote.use(undefined);
  }
}

/** One after the other; where one fails, since somebody has mounted something over it, say, the others go on. */
async function eachAnyway(...steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
