/**
 * The folder of installed plugins. Each package is an npm project of its own, `.packages/<id>/`, complete before
 * the link with the plugin's name leads to it; what no link leads to is an attempt that ended early, and is
 * removed by the next one.
 */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Permission } from '../../../contract/services.ts';
import { undefinedWhenMissing } from '../../../platform/files/missing.ts';
import { makeFolder } from '../../../platform/files/make-folder.ts';
import { syncFolder, writeWhole } from '../../../platform/files/atomic-file.ts';
import { syncTree } from '../../../platform/files/sync-tree.ts';
import {
  judgeContent,
  refuseForeignFolder,
  resolveTrusted,
  Untrusted,
} from '../../../platform/files/ownership.ts';
import { holdFolder } from '../../../platform/state-lock.ts';
import { CHANGED, installedFolder, installedNames, PACKAGES } from '../../../plugins/discovery/installed.ts';
import { readPackage } from '../../../plugins/discovery/manifest.ts';
import type { Source } from './source.ts';

export interface Installed {
  /** Of the plugin, and of the link. */
  readonly name: string;
  /** Of the package. */
  readonly package: string;
  readonly version: string;
  readonly integrity: string | undefined;
  /** True when it, or a package that it depends on, has scripts for its installation. */
  readonly hasScripts: boolean;
  readonly source: Source;
}

/** What npm has put into a project. */
export type Fetched = Omit<Installed, 'name' | 'source'> & { readonly folder: string };

const LINK = /^\.packages\/([0-9a-f]+)\/node_modules\/(.+)$/;

export class PluginStore {
  readonly folder: string;
  readonly #stateDir: string;
  readonly #warn: (sentence: string) => void;

  /** `warn`: told what did not come off after a change that did. */
  constructor(stateDir: string, warn: (sentence: string) => void = () => undefined) {
    this.#stateDir = stateDir;
    this.#warn = warn;
    this.folder = installedFolder(stateDir);
  }

  /**
   * Runs `act` alone among all commands that change this folder. Rejects with a sentence where another one is
   * at work, or where somebody else could write what would be run.
   */
  async alone<T>(act: () => Promise<T>): Promise<T> {
    await this.#prepare();
    return holdFolder(
      this.folder,
      'mountkeeper-install',
      () => new Error(`another command changes ${this.folder} just now; try again when it has ended`),
      async () => {
        await this.#sweep();
        return act();
      },
    );
  }

  async #prepare(): Promise<void> {
    await refuseForeignFolder(this.#stateDir, 'plugin');
    try {
      await makeFolder(path.join(this.folder, PACKAGES));
      const real = await resolveTrusted(path.join(this.folder, PACKAGES));
      for (const folder of [path.dirname(real), real]) judgeContent(folder, await lstat(folder));
    } catch (error) {
      if (error instanceof Untrusted) throw error;
      throw new Error(
        `${this.folder} cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)}); ` +
          "run this as root or as the daemon's user",
        { cause: error },
      );
    }
  }

  /** Runs `act` with a new, empty npm project, which goes unless `act` has put it in place. */
  async withDraft<T>(source: Source, act: (project: string) => Promise<T>): Promise<T> {
    const project = path.join(this.folder, PACKAGES, randomBytes(6).toString('hex'));
    await mkdir(project, { mode: 0o700 });
    try {
      const manifest = { private: true, mountkeeper: { source } };
      await writeFile(path.join(project, 'package.json'), JSON.stringify(manifest));
      return await act(project);
    } finally {
      await this.#orWarn(async () => {
        if (!(await this.#linked()).has(path.basename(project))) await removeAll(project);
      });
    }
  }

  /** The plugin is `fetched` from now on, in one step; then what was there before goes. */
  async putInPlace(name: string, { folder }: Fetched): Promise<void> {
    const link = path.join(this.folder, name);
    const there = await lstat(link).catch(undefinedWhenMissing);
    if (there && !there.isSymbolicLink())
      throw new Error(`${link} is in the way, and no 'plugin install' has made it; take it away`);
    const id = LINK.exec(path.relative(this.folder, folder))?.[1] ?? '';
    await syncTree(path.join(this.folder, PACKAGES, id));
    await syncFolder(path.join(this.folder, PACKAGES));
    const beside = path.join(this.folder, PACKAGES, 'link');
    await rm(beside, { force: true });
    await symlink(path.relative(this.folder, folder), beside);
    await rename(beside, link);
    await this.#changed();
  }

  async remove(name: string): Promise<void> {
    await rm(path.join(this.folder, name), { force: true });
    await this.#changed();
  }

  /**
   * Never rejects: what was to be done is done. The watcher looks at the folders after what is not needed any more is
   * gone.
   */
  async #changed(): Promise<void> {
    await this.#orWarn(async () => {
      // After a loss of power no link may lead to what is removed here.
      await syncFolder(this.folder);
      await this.#sweep();
    });
    await this.#orWarn(() => writeWhole(path.join(this.folder, CHANGED), `${new Date().toISOString()}\n`));
  }

  /** What is left then is removed by the next command. */
  async #orWarn(tidy: () => Promise<void>): Promise<void> {
    await tidy().catch((error: unknown) =>
      this.#warn(`${this.folder} could not be brought in order: ${(error as Error).message}`),
    );
  }

  /** Whether this store has put a plugin of that name there, readable or not. */
  async has(name: string): Promise<boolean> {
    return (await installedNames(this.#stateDir)).includes(name) && (await this.#idOf(name)) !== undefined;
  }

  /** Without those whose files are damaged: they can be removed. */
  async list(): Promise<readonly Installed[]> {
    const names = await installedNames(this.#stateDir);
    // One that cannot be read must not keep the others from being updated.
    const found = await Promise.all(names.map((name) => this.#read(name).catch(() => undefined)));
    return found.filter((one) => one !== undefined);
  }

  /** What the version that is there asks for; undefined where it cannot be read. */
  async permissions(name: string): Promise<readonly Permission[] | undefined> {
    try {
      return readPackage(await readFile(path.join(this.folder, name, 'package.json'), 'utf8')).permissions;
    } catch {
      // It is not there, or damaged.
      return undefined;
    }
  }

  /** Undefined for what was not put there by this store. */
  async #read(name: string): Promise<Installed | undefined> {
    const id = await this.#idOf(name);
    if (id === undefined) return undefined;
    const project = path.join(this.folder, PACKAGES, id);
    const { mountkeeper } = JSON.parse(await readFile(path.join(project, 'package.json'), 'utf8')) as {
      mountkeeper: { source: Source };
    };
    const { folder: _, ...fetched } = await readProject(project);
    return { name, ...fetched, source: mountkeeper.source };
  }

  async #idOf(name: string): Promise<string | undefined> {
    return LINK.exec(await targetOf(path.join(this.folder, name)))?.[1];
  }

  /** An error must not look like an empty folder: what no link leads to is removed. */
  async #linked(): Promise<ReadonlySet<string>> {
    const names = await readdir(this.folder);
    const targets = await Promise.all(names.map((name) => targetOf(path.join(this.folder, name))));
    return new Set(targets.flatMap((target) => LINK.exec(target)?.[1] ?? []));
  }

  async #sweep(): Promise<void> {
    const linked = await this.#linked();
    const packages = path.join(this.folder, PACKAGES);
    for (const id of await readdir(packages)) if (!linked.has(id)) await removeAll(path.join(packages, id));
  }
}

/** '' for what is no link. */
async function targetOf(file: string): Promise<string> {
  return (await lstat(file)).isSymbolicLink() ? readlink(file) : '';
}

/** npm that was interrupted may still be writing for a moment. */
function removeAll(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const TOP = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/;

/** By npm's own lock file. Rejects where the project holds anything but one package and what is below it. */
export async function readProject(project: string): Promise<Fetched> {
  const { packages } = JSON.parse(
    await readFile(path.join(project, 'package-lock.json'), 'utf8'),
  ) as LockFile;
  const top = Object.keys(packages).flatMap((key) => TOP.exec(key)?.[1] ?? []);
  const [name] = top;
  const locked = name === undefined ? undefined : packages[`node_modules/${name}`];
  if (name === undefined || locked === undefined || top.length > 1)
    throw new Error('npm has put its packages elsewhere than it was told to; install npm 9 or newer');
  return {
    package: name,
    version: locked.version ?? '0.0.0',
    integrity: locked.integrity,
    hasScripts: Object.values(packages).some(({ hasInstallScript }) => hasInstallScript === true),
    folder: path.join(project, 'node_modules', name),
  };
}
