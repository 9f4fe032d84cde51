/**
 * The releases of rclone below the state folder: `rclone/v1.75.0/rclone`, and the link `chosen`. A program
 * is whole before it gets that name; drafts that an interrupted command left are removed by the next one.
 */
import { lstat, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { holdFolder, makeFolder, refuseForeignFolder, syncFolder, undefinedWhenMissing } from 'mountkeeper';
import { CHOSEN, PROGRAM, chosenVersion, releasesFolder, safeProgram } from './chosen.ts';
import { compareVersions, parseVersion, versionName } from './versions.ts';
import type { Version } from './versions.ts';

const DRAFT = '.draft-';

export class ReleaseStore {
  readonly folder: string;
  readonly #stateDir: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.folder = releasesFolder(stateDir);
  }

  /**
   * Runs `act` alone among all commands that change this folder. Rejects with a sentence where another one is
   * at work, or where the folder cannot be written.
   */
  async alone<T>(act: () => Promise<T>): Promise<T> {
    await refuseForeignFolder(this.#stateDir, 'rclone');
    await makeFolder(this.folder).catch((error: NodeJS.ErrnoException) => {
      throw new Error(
        `${this.folder} cannot be written (${error.code ?? error.message}); ` +
          "run this as root or as the daemon's user",
        { cause: error },
      );
    });
    return holdFolder(
      this.folder,
      'mountkeeper-rclone',
      () => new Error(`another command changes ${this.folder} just now; try again when it has ended`),
      async () => {
        for (const name of await readdir(this.folder))
          if (name.startsWith(DRAFT)) await rm(join(this.folder, name), { recursive: true, force: true });
        return act();
      },
    );
  }

  /** Runs `act` with a new, empty folder on the same file system, which goes unless it is put in place. */
  async withDraft<T>(act: (draft: string) => Promise<T>): Promise<T> {
    const draft = await mkdtemp(join(this.folder, DRAFT));
    try {
      return await act(draft);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  /** The program in the draft is that version from now on; processes that run a former copy of it go on. */
  async putInPlace(draft: string, version: Version): Promise<void> {
    const program = this.programOf(version);
    await makeFolder(dirname(program));
    await rename(join(draft, PROGRAM), program);
    await syncFolder(dirname(program));
    await syncFolder(this.folder);
  }

  /** Undefined: the system's. Rejects with a sentence where that version is not there, or would not be run. */
  async choose(version: Version | undefined): Promise<void> {
    const link = join(this.folder, CHOSEN);
    if (version === undefined) return rm(link, { force: true });
    if (!(await this.#has(version)))
      throw new Error(
        `rclone ${versionName(version)} is not installed here: run \`mountkeeper rclone install ` +
          `${versionName(version)}\``,
      );
    safeProgram(versionName(version), this.#stateDir);
    const beside = join(this.folder, `${DRAFT}link`);
    await rm(beside, { force: true, recursive: true });
    await symlink(versionName(version), beside);
    await rename(beside, link);
    await syncFolder(this.folder);
  }

  /** Why that version, such as `v1.75.0`, is not run; undefined where it is. */
  problemOf(version: string): string | undefined {
    try {
      safeProgram(version, this.#stateDir);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  programOf(version: Version): string {
    return join(this.folder, versionName(version), PROGRAM);
  }

  /** Newest first. */
  async list(): Promise<readonly Version[]> {
    const names = (await readdir(this.folder).catch(undefinedWhenMissing)) ?? [];
    const versions: Version[] = [];
    for (const name of names) {
      const version = name.startsWith('v') ? parseVersion(name) : undefined;
      if (version && (await this.#has(version))) versions.push(version);
    }
    return versions.sort((one, other) => compareVersions(other, one));
  }

  get chosen(): string | undefined {
    return chosenVersion(this.#stateDir);
  }

  async #has(version: Version): Promise<boolean> {
    return (await lstat(this.programOf(version)).catch(undefinedWhenMissing))?.isFile() === true;
  }
}
