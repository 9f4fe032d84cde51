/**
 * A share's files on the remote, which change only while the upper folder is the one that the records are about. All
 * steps go by it: what they know may be older than a look, and right before a deletion is the last moment to see that
 * nobody has wanted it.
 */
import type { RemoteEntry, RemoteFiles, RemoteHash, RemoteRoot } from 'mountkeeper';

interface Ended {
  readonly signal: AbortSignal;
}

export class GuardedRemote implements RemoteFiles {
  readonly #remote: RemoteFiles;
  readonly #check: () => Promise<unknown>;

  /** `check` rejects where nothing may be changed. */
  constructor(remote: RemoteFiles, check: () => Promise<unknown>) {
    this.#remote = remote;
    this.#check = check;
  }

  get precisionMs(): number {
    return this.#remote.precisionMs;
  }

  get root(): RemoteRoot | undefined {
    return this.#remote.root;
  }

  get leavesTaken(): boolean {
    return this.#remote.leavesTaken === true;
  }

  notePrecision(ms: number): void {
    this.#remote.notePrecision?.(ms);
  }

  nameProblem(name: string): string | undefined {
    return this.#remote.nameProblem?.(name);
  }

  stat(path: string, options: Ended & { readonly hash?: boolean }): Promise<RemoteEntry | undefined> {
    return this.#remote.stat(path, options);
  }

  readBack(path: string, options: Ended): Promise<RemoteHash> {
    return this.#remote.readBack(path, options);
  }

  list(folder: string, options: Ended): Promise<readonly RemoteEntry[] | undefined> {
    return this.#remote.list(folder, options);
  }

  forget(folders: readonly string[], options: Ended): Promise<void> {
    return this.#remote.forget(folders, options);
  }

  async upload(local: string, path: string, options: Parameters<RemoteFiles['upload']>[2]): Promise<void> {
    await this.#check();
    const { beforeNaming, ...rest } = options;
    const checked = async (): Promise<void> => {
      // The transfer may have taken hours.
      await this.#check();
      await beforeNaming?.();
    };
    await this.#remote.upload(local, path, { ...rest, ...(beforeNaming && { beforeNaming: checked }) });
  }

  async uploadNew(
    local: string,
    path: string,
    options: Ended & { readonly onProgress?: (bytes: number) => void },
  ): Promise<boolean> {
    await this.#check();
    return this.#remote.uploadNew!(local, path, options);
  }

  async clearLeftovers(path: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.clearLeftovers(path, options);
  }

  async moveFile(from: string, to: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.moveFile(from, to, options);
  }

  async moveFolder(from: string, to: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.moveFolder(from, to, options);
  }

  async deleteFile(path: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.deleteFile(path, options);
  }

  async makeFolder(path: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.makeFolder(path, options);
  }

  async removeFolder(path: string, options: Ended): Promise<void> {
    await this.#check();
    await this.#remote.removeFolder(path, options);
  }
}
