/** Some children that touch the share at the same time: most of what they do is waiting. */
import { join } from 'node:path';
import type { Scratch } from '../platform/scratch-folder.ts';
import { ShareWorker } from './share-worker.ts';
import type { Step } from './operations.ts';

const SIZE = 4;

/** A pool of share workers. */
export class ShareWorkerPool {
  readonly #all: readonly ShareWorker[];

  constructor(scratch: Scratch) {
    this.#all = Array.from({ length: SIZE }, () => new ShareWorker(scratch));
  }

  /** One step a folder. Error codes, null for what was done. */
  async steps(root: string, steps: readonly Step[]): Promise<readonly (string | null)[]> {
    const answers: (string | null)[] = [];
    await Promise.all(
      this.#all.map(async (hands, place) => {
        const own = [...steps.keys()].filter((index) => index % SIZE === place);
        const found = await hands.steps(
          root,
          own.map((index) => steps[index]!),
        );
        for (const [at, index] of own.entries()) answers[index] = found[at] ?? null;
      }),
    );
    return answers;
  }

  /** Reads the first bytes of each file, several at a time. */
  async read(root: string, files: readonly string[], bytes: number): Promise<void> {
    await Promise.all(
      this.#all.map((hands, place) =>
        hands.read(
          root,
          files.filter((_, index) => index % SIZE === place),
          bytes,
        ),
      ),
    );
  }

  /** Of these folders in the root, and of nothing else there. */
  async trees(root: string, folders: readonly string[]): Promise<Record<string, string>> {
    const trees = await Promise.all(
      folders.map(async (folder, index) => {
        const tree = await this.#all[index % SIZE]!.tree(join(root, folder));
        return [
          [folder, 'folder'],
          ...Object.entries(tree).map(([path, what]) => [`${folder}/${path}`, what]),
        ] as [string, string][];
      }),
    );
    return Object.fromEntries(trees.flat());
  }
}
