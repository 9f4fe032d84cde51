import { constants, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { firstAccessible } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import type { SmbPaths } from './paths.ts';

/** What is installed of Samba. */
export interface Samba {
  readonly smbd: string;
  readonly nssWrapper: string;
  /** The modules for macOS are installed. */
  readonly hasFruit: boolean;
  /** Changes when another version is installed. */
  readonly stamp: string;
}

/** What Samba's own tools are run with, so that they speak of this server. */
export interface SambaTools {
  readonly processes: Processes;
  readonly paths: SmbPaths;
  /** With the private user list. */
  readonly env: Readonly<Record<string, string>>;
}

const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const LIBRARIES = ['/usr/local/lib', '/usr/lib64', '/usr/lib'];
const ASK_MS = 5_000;
export const MODULES = ['catia', 'fruit'] as const;

export function locate(command: string, folders: readonly string[] = FOLDERS): Promise<string | undefined> {
  return firstAccessible(
    folders.map((folder) => join(folder, command)),
    constants.X_OK,
  );
}

/** On some systems, libraries are in folders named after the machine's architecture. */
async function locateLibrary(name: string): Promise<string | undefined> {
  for (const folder of LIBRARIES) {
    // Not every system has each of them.
    const inner = (await readdir(folder).catch(() => [])).filter(
      (entry) => entry.endsWith('-gnu') || entry.includes('-linux-'),
    );
    const found = await firstAccessible(
      [folder, ...inner.map((entry) => join(folder, entry))].map((paths) => join(paths, name)),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Names of packages that are missing, as Debian calls them. */
export async function missingPackages(): Promise<readonly string[]> {
  const [server, tools, wrapper] = await Promise.all([
    locate('smbd'),
    Promise.all(['testparm', 'smbcontrol', 'smbpasswd', 'pdbedit'].map((name) => locate(name))),
    locateLibrary('libnss_wrapper.so'),
  ]);
  return [
    ...(server === undefined ? ['samba'] : []),
    ...(tools.includes(undefined) ? ['samba-common-bin'] : []),
    ...(wrapper === undefined ? ['libnss-wrapper'] : []),
  ];
}

/** Rejects with a sentence that says what to install. */
export async function findSamba(processes: Processes): Promise<Samba> {
  const missing = await missingPackages();
  if (missing.length > 0)
    throw new Error(
      'the SMB server is not installed: install ' +
        `${missing.length > 1 ? 'the packages' : 'the package'} ${missing.join(', ')}`,
    );
  if (process.getuid?.() !== 0)
    throw new Error('smbd needs root: run the daemon as root, or set smb.enabled = false');
  const smbd = (await locate('smbd')) as string;
  const { mtimeMs, size } = await stat(smbd);
  return {
    smbd,
    nssWrapper: (await locateLibrary('libnss_wrapper.so')) as string,
    hasFruit: await hasModules(smbd, processes),
    stamp: `${smbd} ${size} ${mtimeMs}`,
  };
}

export async function hasModules(smbd: string, processes: Processes): Promise<boolean> {
  // It cannot say where: then they are looked for in vain, and doctor says so.
  const { stdout } = await processes
    .run({ command: smbd, args: ['-b'], timeoutMs: ASK_MS })
    .catch(() => ({ stdout: '' }));
  const folder = /^[ \t]*MODULESDIR:[ \t]*(\S.*)$/m.exec(stdout)?.[1]?.trim();
  if (folder === undefined) return false;
  const found = await Promise.all(
    MODULES.map((name) => firstAccessible([join(folder, 'vfs', `${name}.so`)])),
  );
  return found.every((file) => file !== undefined);
}
