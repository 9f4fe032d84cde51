/** The mounts that are up, and which of them run another rclone than the next mount would have. */
import { unlessAborted } from 'mountkeeper';
import { rcloneToRun } from '../releases/chosen.ts';
import type { Outdated, RunningRclone } from '../releases/renewal.ts';
import type { MountTools } from './tools.ts';

export class RunningMounts {
  readonly #mounts = new Map<string, RunningRclone>();
  readonly #uploading = new Map<string, Promise<void>>();

  /** Until it ends, or another one of the same share comes. */
  add(mount: RunningRclone): void {
    const { shareName } = mount;
    this.#mounts.set(shareName, mount);
    if (mount.uploadsEnded) this.#uploading.set(shareName, mount.uploadsEnded);
    void mount.exited.then(() => {
      if (this.#mounts.get(shareName) === mount) this.#mounts.delete(shareName);
    });
  }

  /** Two uploaders on one cache would take each other's work for that of users. Rejects when the signal aborts. */
  async uploadsEnded(shareName: string, signal: AbortSignal): Promise<void> {
    await unlessAborted(signal, this.#uploading.get(shareName) ?? Promise.resolve());
  }

  /** Those whose rclone is known and another one; none where the next one is not known. */
  async outdated(tools: MountTools): Promise<readonly Outdated[]> {
    // The next mount says what is wrong with it, and so does `doctor`.
    const found = await Promise.resolve()
      .then(() => tools.finder.find(rcloneToRun(tools.config().mount, tools.paths.stateDir)))
      .catch(() => undefined);
    if (found === undefined) return [];
    const { version: next } = found;
    return [...this.#mounts.values()].flatMap((mount) => {
      const { rclone } = mount;
      return rclone === undefined || rclone === next ? [] : [{ mount, rclone, next }];
    });
  }
}
