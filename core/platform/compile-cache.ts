/**
 * Keeps what V8 made of the modules for the next start: half of a start is reading them. From Node.js 22.1 on. What is
 * kept is code that the next start runs, so it lies in the state folder, where nobody else can write, or nowhere.
 */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { judgeContent, resolveTrusted } from './files/ownership.ts';
import { packageVersion } from './package.ts';

const FOLDER = 'compiled';
/** Four times what a daemon needs. More come from third parties' plugins, for each of their versions. */
const MOST_FILES = 4_000;

/** Of `node:module`, from Node.js 22 on. */
interface CompileCache {
  readonly enableCompileCache?: (folder: string) => unknown;
  readonly flushCompileCache?: () => void;
}

const { enableCompileCache, flushCompileCache }: CompileCache = nodeModule as CompileCache;

/**
 * From now on modules are read with what former starts kept in `stateDir`. `mayMake`: the folder is made, and those of
 * other versions are thrown away; else one that is not there is not used. Never rejects: without it a start takes
 * longer.
 */
export async function useCompiled(
  stateDir: string,
  { mayMake, enable = enableCompileCache }: { mayMake: boolean; enable?: CompileCache['enableCompileCache'] },
): Promise<void> {
  if (enable === undefined) return;
  try {
    const all = join(await ownFolder(stateDir), FOLDER);
    const ours = `${await packageVersion()}-node-${process.versions.node}`;
    if (mayMake) await clear(all, ours);
    enable(await ownFolder(join(all, ours)));
  } catch {
    // No state folder yet, or one that others could change: the daemon's start mends or refuses that, and says so.
  }
}

/** Writes out what is new. It would be lost when the process is killed; what is there already costs nothing. */
export function keepCompiled(): void {
  flushCompileCache?.();
}

/** The folder with every symlink followed. Rejects where anybody else could change what is in it. */
async function ownFolder(path: string): Promise<string> {
  const real = await resolveTrusted(path);
  judgeContent(real, await lstat(real));
  return real;
}

/** Leaves one folder there: that of this version, unless it has grown too large. */
async function clear(all: string, ours: string): Promise<void> {
  await mkdir(all, { mode: 0o700, recursive: true });
  for (const name of await readdir(await ownFolder(all)))
    if (name !== ours) await rm(join(all, name), { recursive: true, force: true });
  const own = join(all, ours);
  await mkdir(own, { mode: 0o700, recursive: true });
  if ((await readdir(own, { recursive: true })).length > MOST_FILES) {
    await rm(own, { recursive: true });
    await mkdir(own, { mode: 0o700 });
  }
}
