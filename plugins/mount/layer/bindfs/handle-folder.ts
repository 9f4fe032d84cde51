/**
 * The folder from which NFS shows a share with a write layer. The overlay gives no file handles, so one more
 * bindfs mirrors it, whose numbers for files last as long as its process: after a rename through it, a copy-up,
 * another rclone below and a restart of the NFS server, a handle leads to the same file. A name that was
 * replaced or renamed past it leads by its path. After the process, its numbers would mean other files.
 */
import { createSerialQueue, makeFolder } from 'mountkeeper';
import type { HandleFolder, ManagedProcess } from 'mountkeeper';
import { flagsOf, overlaySource } from '../overlay.ts';
import type { OverlaySpec } from '../overlay.ts';
import { ENTER } from '../../lifecycle/passage.ts';
import { endBindfs, startBindfs } from './start.ts';
import type { BindfsTools } from './start.ts';

const COMMAND_TIMEOUT_MS = 5_000;
/** Most stacked mounts that are removed from the folder. */
const MOST_MOUNTS = 32;

/**
 * Written to, so without the name that FUSE keeps for a file that is removed while it is open: it would go to
 * the remote. Not through the kernel's page cache, which would belong to the path: it would show a client with
 * an open file what others put in its place. What no remote keeps (owner, mode) is left alone. Locks are not
 * forwarded: bindfs would lose them whenever it closes the file for anybody else.
 */
const OPTIONS = ['--chown-ignore', '--chgrp-ignore', '--chmod-ignore', '-o', 'hard_remove,direct_io'];

/** An admin may have given a file in the share to somebody, and NFS clients act as root. */
const OTHERS_FILES = ['dac_override', 'fowner'];

/**
 * bindfs goes by paths with root's rights: without this flag, a symlink that users put in a folder's place
 * would lead it out of the share. A former daemon's overlay may lack it.
 */
const LOCK = `${ENTER}
mount -n -i -c -o "remount,bind,$2" none . && findmnt -n -o VFS-OPTIONS -M "$1" | grep -qw nosymfollow`;

export interface HandleFolderOptions {
  readonly shareName: string;
  /** Where the overlay is mounted. */
  readonly mountPoint: string;
  readonly flags: Pick<OverlaySpec, 'exec' | 'readOnly'>;
  /** Where bindfs is mounted. */
  readonly place: string;
  readonly tools: BindfsTools;
}

export function handlesKey(shareName: string): string {
  return `handles/${shareName}`;
}

export class KeptHandles {
  readonly #options: HandleFolderOptions;
  readonly #turns = createSerialQueue();
  #process: ManagedProcess | undefined;
  #isOver = false;

  constructor(options: HandleFolderOptions) {
    this.#options = options;
  }

  /** The folder of the living process, also of a former daemon's; else of a new one. Rejects with a plain sentence. */
  folder(): Promise<HandleFolder> {
    return this.#turns.run(async () => {
      if (this.#isOver) throw new Error('the share is being unmounted');
      const { place } = this.#options;
      this.#process = (await this.#living()) ?? (await this.#start());
      return { path: place, pid: this.#process.pid, end: () => this.#endUnused() };
    });
  }

  /** Ends the process: files that it has open are closed. */
  end(): Promise<void> {
    this.#isOver = true;
    return this.#turns.run(() => this.#endProcess());
  }

  /** Forgets the process, for the next daemon. */
  release(): void {
    this.#isOver = true;
    this.#process?.release();
  }

  /** Until `folder` is called again. Once all is over, the process may be that of the share's next mount. */
  #endUnused(): Promise<void> {
    return this.#turns.run(async () => {
      if (!this.#isOver) await this.#endProcess();
    });
  }

  async #living(): Promise<ManagedProcess | undefined> {
    const { place, tools } = this.#options;
    const process = await this.#found();
    const isMounted = (await tools.mountTable.find(place)) !== undefined;
    return process?.isAlive() === true && isMounted ? process : undefined;
  }

  async #found(): Promise<ManagedProcess | undefined> {
    if (this.#process?.isAlive() === true) return this.#process;
    return this.#options.tools.processes.adopt(handlesKey(this.#options.shareName));
  }

  async #endProcess(): Promise<void> {
    const process = await this.#found();
    if (process) await endBindfs(process);
  }

  async #start(): Promise<ManagedProcess> {
    const { flags, mountPoint, place, shareName, tools } = this.#options;
    await this.#endProcess();
    await this.#clear();
    // The stack of a former version has no such folder.
    await makeFolder(place);
    // A former version covered a frozen share by an empty file system.
    const top = await tools.mountTable.find(mountPoint);
    if (top?.source !== overlaySource(shareName))
      throw new Error(`the share is not at ${mountPoint} just now`);
    const readOnly = flags.readOnly || top.readOnly;
    const { code } = await tools.processes.run({
      command: 'sh',
      args: ['-c', LOCK, 'sh', mountPoint, flagsOf({ ...flags, readOnly })],
      env: { LC_ALL: 'C' },
      timeoutMs: COMMAND_TIMEOUT_MS,
    });
    if (code !== 0)
      throw new Error(
        `symlinks on ${mountPoint} cannot be kept from leading out of the share: ` +
          'this needs Linux 5.10 and util-linux 2.37',
      );
    return startBindfs(
      {
        key: handlesKey(shareName),
        options: OPTIONS,
        source: mountPoint,
        place,
        fingerprint: mountPoint,
        capabilities: OTHERS_FILES,
      },
      tools,
    );
  }

  /** Takes off what ended processes left. */
  async #clear(): Promise<void> {
    const { place, tools } = this.#options;
    for (
      let count = 0;
      count < MOST_MOUNTS && (await tools.mountTable.find(place)) !== undefined;
      count += 1
    ) {
      await tools.processes.run({
        command: 'umount',
        args: ['-i', '-n', '-l', '-c', '--', place],
        timeoutMs: COMMAND_TIMEOUT_MS,
      });
    }
  }
}

/** Ends the process of this or a former daemon: it keeps the overlay alive that it mirrors. */
export async function endHandles(shareName: string, { processes }: BindfsTools): Promise<void> {
  const process = await processes.adopt(handlesKey(shareName));
  if (process) await endBindfs(process);
}
