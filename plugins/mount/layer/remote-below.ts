/**
 * A share's files on the remote, through whichever rclone is current: the uploader keeps this object while
 * rclones are replaced.
 */
import type { RemoteEntry, RemoteFailure, RemoteFiles, RemoteHash, RemoteRoot } from 'mountkeeper';
import { nameProblem } from '../rclone/kept-names.ts';
import type { Outdated, RcloneFiles } from '../rclone/remote-files.ts';

export class RemoteBelow implements RemoteFiles {
  readonly #type: string;
  readonly #problem: () => string;
  #files: RcloneFiles | undefined;
  #precisionMs = Infinity;
  /** What the remote has shown, whatever rclone says of it. */
  #shownMs = 0;

  /** `type` is the backend's name in rclone; `problem` returns why there is no rclone at the moment. */
  constructor(type: string, problem: () => string) {
    this.#type = type;
    this.#problem = problem;
  }

  /** Switches to another rclone, or to none. Unanswered calls to the former one fail. */
  use(files: RcloneFiles | undefined): void {
    if (this.#files) this.#precisionMs = this.#toldMs;
    this.#files?.close();
    this.#files = files;
  }

  get precisionMs(): number {
    return Math.max(this.#toldMs, this.#shownMs);
  }

  notePrecision(ms: number): void {
    this.#shownMs = Math.max(this.#shownMs, ms);
  }

  get #toldMs(): number {
    const now = this.#files?.precisionMs ?? Infinity;
    return Number.isFinite(now) ? now : this.#precisionMs;
  }

  get root(): RemoteRoot | undefined {
    return this.#files?.root;
  }

  nameProblem(name: string): string | undefined {
    return nameProblem(this.#type, name);
  }

  async stat(
    path: string,
    options: { readonly signal: AbortSignal; readonly hash?: boolean },
  ): Promise<RemoteEntry | undefined> {
    return this.#now().stat(path, options);
  }

  async readBack(path: string, options: { readonly signal: AbortSignal }): Promise<RemoteHash> {
    return this.#now().readBack(path, options);
  }

  async list(
    folder: string,
    options: { readonly signal: AbortSignal },
  ): Promise<readonly RemoteEntry[] | undefined> {
    return this.#now().list(folder, options);
  }

  async clearLeftovers(path: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().clearLeftovers(path, options);
  }

  async upload(local: string, path: string, options: Parameters<RemoteFiles['upload']>[2]): Promise<void> {
    await this.#now().upload(local, path, options);
  }

  get leavesTaken(): boolean {
    return this.#files?.leavesTaken === true;
  }

  async uploadNew(
    local: string,
    path: string,
    options: {
      readonly signal: AbortSignal;
      readonly onProgress?: (bytes: number) => void;
    },
  ): Promise<boolean> {
    return this.#now().uploadNew(local, path, options);
  }

  async moveFile(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().moveFile(from, to, options);
  }

  async moveFolder(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().moveFolder(from, to, options);
  }

  async deleteFile(path: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().deleteFile(path, options);
  }

  async makeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().makeFolder(path, options);
  }

  async removeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#now().removeFolder(path, options);
  }

  async forget(
    folders: readonly string[],
    options: {
      readonly signal: AbortSignal;
      readonly change?: (() => Promise<Outdated>) | undefined;
    },
  ): Promise<void> {
    await this.#now().forget(folders, options);
  }

  #now(): RcloneFiles {
    if (this.#files) return this.#files;
    throw Object.assign(new Error(this.#problem()), {
      remote: 'silent',
    } as Pick<RemoteFailure, 'remote'>);
  }
}
