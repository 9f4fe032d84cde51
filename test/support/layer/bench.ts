/** A share with a write layer without the daemon; what brings it to the NAS is played by the test. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Mount, RemoteFiles, Uploader, WriteLayer } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { runClient } from '../exports/exports.ts';
import { createWorkbench } from '../mount/workbench.ts';
import type { Workbench } from '../mount/workbench.ts';
import { Nas } from '../nas.ts';
import { currentRclone } from '../rclones.ts';
import { createScratch } from '../scratch.ts';
import type { Scratch } from '../scratch.ts';

const FIGURES = {
  lookedAtMs: 0,
  dirtyFiles: 0,
  dirtyBytes: 0,
  stuckFiles: 0,
  uploading: 0,
  uploadedBytes: 0,
};

export class LayerBench {
  static readonly clock = createClock();
  readonly scratch: Scratch;
  readonly nas: Nas;
  readonly bench: Workbench;
  /** Of the last mount. */
  mount!: Mount;
  layer!: WriteLayer;
  remote!: RemoteFiles;

  static async create(files: Readonly<Record<string, number>>): Promise<LayerBench> {
    const scratch = await createScratch('layer');
    const made = new LayerBench(scratch, await Nas.create(scratch, { files }));
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
          refreshed: () => undefined,
          holdMoves: () => Promise.resolve(() => undefined),
          settleMoves: () => Promise.resolve(),
          queue: () => [],
          conflicts: () => [],
          stop: () => Promise.resolve(),
        };
      },
      settle: () => Promise.resolve(),
      waiting: () => Promise.resolve({ count: 0, bytes: 0, paths: [] }),
    };
    this.bench = createWorkbench(scratch, {
      rclone: currentRclone(),
      nas,
      mount: { write_layer: true },
      uploader,
    });
  }

  get root(): string {
    return this.mount.plan.mountPoint;
  }

  signal(): AbortSignal {
    return LayerBench.clock.deadline(20_000);
  }

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
    await this.remote.upload(join(this.layer.upper, path), path, { signal: this.signal() });
  }
}
