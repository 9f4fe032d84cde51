/** A share with a write layer without the daemon; what brings it to the NAS is played by the test. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Mount, RemoteFiles, Uploader, WriteLayer } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { runClient } from '../exports/client-programs.ts';
import { createWorkbench } from '../mount/workbench.ts';
import type { Workbench } from '../mount/workbench.ts';
import { Nas } from '../nas/nas.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import { createScratch } from '../platform/scratch-folder.ts';
import type { Scratch } from '../platform/scratch-folder.ts';

const FIGURES = {
  lookedAtMs: 0,
  dirtyFiles: 0,
  dirtyBytes: 0,
  stuckFiles: 0,
  uploading: 0,
  uploadedBytes: 0,
  localBytes: 0,
};

/** One mounted share with a write layer and its NAS. Both end with `scratch`. */
export class LayerWorkbench {
  static readonly clock = createClock();
  readonly scratch: Scratch;
  readonly nas: Nas;
  readonly bench: Workbench;
  /** Of the last mount. */
  mount!: Mount;
  layer!: WriteLayer;
  remote!: RemoteFiles;

  /** Starts the NAS with files of so many bytes, and mounts the share. */
  static async create(files: Readonly<Record<string, number>>): Promise<LayerWorkbench> {
    const scratch = await createScratch('layer');
    const made = new LayerWorkbench(scratch, await Nas.create(scratch, { files }));
    await made.mountAgain();
    return made;
  }

  private constructor(scratch: Scratch, nas: Nas) {
    this.scratch = scratch;
    this.nas = nas;
    const uploader: Uploader = {
      start: (options) => {
        ({ layer: this.layer, remote: this.remote } = options);
        return {
          figures: FIGURES,
          look: () => Promise.resolve(FIGURES),
          flush: () => undefined,
          pausedUntil: undefined,
          pause: () => undefined,
          refreshed: () => undefined,
          holdMoves: () => Promise.resolve(() => undefined),
          settleMoves: () => Promise.resolve(),
          queue: () => [],
          conflicts: () => [],
          stop: () => Promise.resolve(),
        };
      },
      settle: () => Promise.resolve(),
      noteLateWrites: () => Promise.resolve(0),
      waiting: () => Promise.resolve({ count: 0, bytes: 0, paths: [] }),
    };
    this.bench = createWorkbench(scratch, {
      rclone: currentRclone(),
      nas,
      uploader,
    });
  }

  /** The mount point. */
  get root(): string {
    return this.mount.plan.mountPoint;
  }

  /** A signal that aborts in 20 s. */
  signal(): AbortSignal {
    return LayerWorkbench.clock.deadline(20_000);
  }

  /** Mounts the share; the test has unmounted a former mount. */
  async mountAgain(): Promise<void> {
    this.mount = await this.bench.mount(this.bench.spec('s'));
  }

  /** In the share, by a child with a deadline. */
  async sh(script: string): Promise<string> {
    const { code, output } = await runClient('sh', ['-c', `cd "${this.root}" && { ${script}; }`], 20_000);
    assert.equal(code, 0, `${script}: ${output}`);
    return output.trim();
  }

  /** What an uploader would do. */
  async bringUp(path: string): Promise<void> {
    await this.remote.upload(join(this.layer.upper, path), path, {
      signal: this.signal(),
      isReplacing: true,
    });
  }
}
