/**
 * The handle of a share with a write layer: rclone mounted read-only for reading, an overlay that users see, an uploader that
 * brings the upper folder to the remote. What concerns reading and the remote is the rclone mount's.
 */
import type {
  Bandwidth, CacheAccess, Mount, MountPlan, MountStats, PendingFiles, RefreshResult, ShareUploads, UploadFigures, Uploader,
} from 'mountkeeper';
import { durationMs } from 'mountkeeper';
import { createInPlace } from '../in-place.ts';
import type { LivingMount } from '../living-mount.ts';
import { RcloneFiles } from '../rclone/remote-files.ts';
import type { RcAddress } from '../rc-client.ts';
import { clearMountPoint } from '../mount-point.ts';
import { sealMount } from '../seal.ts';
import type { MountTools } from '../tools.ts';
import { LocalLayer } from './local-layer.ts';
import { dropNames, overlaySource } from './overlay.ts';
import type { LayerPaths } from './paths.ts';
import { Renewal } from './renewal.ts';

const FORGET_MS = 5_000;

export interface LayeredMountOptions {
  /** rclone's mount, for the overlay alone. */
  readonly lower: LivingMount;
  readonly plan: MountPlan;
  readonly paths: LayerPaths;
  readonly address: RcAddress;
  /** The remote as rclone names it. */
  readonly fs: string;
  /** The backend, as rclone calls it. */
  readonly type: string;
  readonly uploader: Uploader;
  readonly exec: boolean;
  readonly readOnly: boolean;
  readonly tools: MountTools;
}

export class LayeredMount implements Mount {
  readonly shareName: string;
  readonly plan: MountPlan;
  readonly rcPort: number;
  readonly pid: number;
  readonly adopted: boolean;
  readonly exited: Promise<string>;
  /** A former daemon had sealed it. */
  isSealed = false;
  readonly #options: LayeredMountOptions;
  readonly #lower: LivingMount;
  readonly #remote: RcloneFiles;
  readonly #uploads: ShareUploads;
  readonly #lookAtPlace: () => Promise<string | undefined>;
  readonly #end = new AbortController();
  #isSealed = false;
  #dropping: Promise<void> | undefined;
  #isDropDue = false;

  constructor(options: LayeredMountOptions) {
    const { lower, plan, paths, tools } = options;
    this.#options = options;
    this.#lower = lower;
    this.shareName = lower.shareName;
    this.plan = plan;
    this.rcPort = lower.rcPort;
    this.pid = lower.pid;
    this.adopted = lower.adopted;
    const renewal = new Renewal({ clock: tools.clock, end: this.#end.signal, read: (folder, signal) => lower.refreshDirectories(folder, { recursive: false, signal }) });
    this.#remote = new RcloneFiles({ address: options.address, fs: options.fs, type: options.type, clock: tools.clock, onForget: (folders) => renewal.forgotten(folders) });
    const layer = new LocalLayer({
      shareName: lower.shareName, paths, lower: lower.plan.mountPoint, mountPoint: plan.mountPoint, processes: tools.processes, clock: tools.clock, log: tools.log,
      forget: (folders) => this.#remote.forget(folders, { signal: tools.clock.deadline(FORGET_MS, this.#end.signal) }),
      dropNames: () => this.#dropNames(), precisionMs: () => this.#remote.precisionMs,
    });
    this.#uploads = options.uploader.start({
      layer, remote: this.#remote, writeBackMs: () => durationMs(tools.config().mount.write_back), transfers: () => tools.config().mount.transfers,
    });
    this.#lookAtPlace = createInPlace({
      mountPoint: plan.mountPoint, device: overlaySource(lower.shareName), mountTable: tools.mountTable, onLost: () => void lower.kill().catch(() => undefined),
    });
    lower.onChange = () => this.#dropNames();
    this.exited = lower.exited.then(async (reason) => {
      await this.#stopUploads();
      return reason;
    });
  }

  async stats(signal: AbortSignal): Promise<MountStats> {
    const [inTheWay, reading, waiting] = await Promise.all([this.#lookAtPlace(), this.#lower.stats(signal), this.#uploads.look(signal)]);
    return withUploads(reading, waiting, inTheWay);
  }

  checkRemote(signal: AbortSignal): Promise<void> {
    return this.#lower.checkRemote(signal);
  }

  /** The overlay answers from its upper folder alone, so what is below is asked, too. */
  async checkAlive(timeoutMs: number): Promise<void> {
    const { tools } = this.#options;
    await Promise.all([this.#lower.checkAlive(timeoutMs), tools.mountReader.touch(this.plan.mountPoint, { timeoutMs })]);
  }

  setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void> {
    return this.#lower.setBandwidth(limit, signal);
  }

  async seal(): Promise<void> {
    if (this.#isSealed) return;
    // Before anything is awaited: dropping names makes the overlay writable.
    this.#isSealed = true;
    try {
      await this.#dropping;
      await sealMount(this.plan.mountPoint, this.#options.tools, this.#end.signal);
    } catch (error) {
      this.#isSealed = false;
      throw error;
    }
  }

  flush(): Promise<void> {
    this.#uploads.flush();
    return Promise.resolve();
  }

  refreshDirectories(path: string, options: { readonly recursive: boolean; readonly signal: AbortSignal }): Promise<RefreshResult> {
    return this.#lower.refreshDirectories(path, options);
  }

  async unmount(): Promise<void> {
    this.#end.abort();
    await this.#stopUploads();
    await this.#takeOffPath();
    await this.#lower.unmount();
  }

  /** rclone first: calls that wait in the overlay end with it. */
  async kill(): Promise<void> {
    this.#end.abort();
    const stopped = this.#stopUploads();
    await this.#lower.kill();
    await this.#takeOffPath();
    await stopped;
  }

  cacheAccess(): CacheAccess {
    const { module, parameters } = this.#lower.cacheAccess();
    return { module, parameters: { ...parameters, upper: this.#options.paths.upper } };
  }

  async pending(): Promise<PendingFiles> {
    const { paths, uploader } = this.#options;
    const [written, cached] = await Promise.all([uploader.waiting(paths.upper, paths.records), this.#lower.pending()]);
    return { count: written.count + cached.count, bytes: written.bytes + cached.bytes, paths: [...written.paths, ...cached.paths] };
  }

  release(): void {
    this.#end.abort();
    void this.#stopUploads();
    this.#lower.release();
  }

  get cacheRoot(): string {
    return this.#lower.cacheRoot;
  }

  /** After a change of what lies below. One that comes while names are being dropped has them dropped once more. */
  async #dropNames(): Promise<void> {
    this.#isDropDue = true;
    this.#dropping ??= this.#dropWhileDue().finally(() => (this.#dropping = undefined));
    await this.#dropping;
  }

  async #dropWhileDue(): Promise<void> {
    const { exec, readOnly, tools } = this.#options;
    while (this.#isDropDue && !this.#isSealed && !this.isSealed && !this.#end.signal.aborted) {
      this.#isDropDue = false;
      await dropNames({ mountPoint: this.plan.mountPoint, exec, readOnly }, tools)
        .catch((error: unknown) => tools.log.warn({ share: this.shareName, err: error }, 'names not dropped, some may show what was before'));
    }
  }

  async #takeOffPath(): Promise<void> {
    // What lies over it, too: a cover that refuses new writes.
    await clearMountPoint(this.plan.mountPoint, this.#options.tools, { living: 'detach' });
  }

  /** What waits stays in the upper folder: a failure here is in nobody's way. */
  async #stopUploads(): Promise<void> {
    await this.#uploads.stop().catch((error: unknown) => this.#options.tools.log.warn({ share: this.shareName, err: error }, 'uploads not ended'));
    this.#remote.close();
  }
}

/** Figures of reading, with those of the uploader. */
function withUploads(reading: MountStats, waiting: UploadFigures, inTheWay: string | undefined): MountStats {
  const stuck = waiting.stuckFiles > 0
    ? `${waiting.stuckFiles} of the files written here cannot be brought to the remote (${waiting.stuckReason ?? 'no reason given'}); they stay here` : undefined;
  const troubles = [reading.trouble, stuck, inTheWay].filter((text) => text !== undefined);
  return {
    ...reading,
    dirtyFiles: reading.dirtyFiles + waiting.dirtyFiles,
    dirtyBytes: reading.dirtyFiles === 0 ? waiting.dirtyBytes : undefined,
    oldestDirtyAt: waiting.oldestDirtyAt,
    erroredFiles: reading.erroredFiles + waiting.stuckFiles,
    uploading: reading.uploading || waiting.uploading > 0,
    downloading: reading.transfers > waiting.uploading,
    uploadedBytes: waiting.uploadedBytes,
    trouble: troubles.length > 0 ? troubles.join('; ') : undefined,
  };
}
