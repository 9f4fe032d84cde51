import { access, constants, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Processes } from 'mountkeeper';

/** What of Samba is installed here. */
export interface Samba {
  readonly smbd: string;
  readonly nssWrapper: string;
  /** The modules that serve macOS at its best are there. */
  readonly hasFruit: boolean;
  /** Changes when another version is installed. */
  readonly stamp: string;
}

const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const LIBRARIES = ['/usr/local/lib', '/usr/lib64', '/usr/lib'];
const ASK_MS = 5_000;
export const MODULES = ['catia', 'fruit'] as const;

export async function locate(
  command: string,
  folders: readonly string[] = FOLDERS,
): Promise<string | undefined> {
  for (const folder of folders) {
    const file = join(folder, command);
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  return undefined;
}

/** Libraries lie in folders named by the machine's architecture on some systems. */
async function locateLibrary(name: string): Promise<string | undefined> {
  for (const folder of LIBRARIES) {
    const inner = (await readdir(folder).catch(() => [])).filter(
      (entry) => entry.endsWith('-gnu') || entry.includes('-linux-'),
    );
    const found = await locateReadable(
      [folder, ...inner.map((entry) => join(folder, entry))].map((place) => join(place, name)),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

async function locateReadable(files: readonly string[]): Promise<string | undefined> {
  for (const file of files)
    if (
      await access(file, constants.R_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
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
      `the SMB server is not installed: install ${missing.length > 1 ? 'the packages' : 'the package'} ${missing.join(', ')}`,
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
  const { stdout } = await processes
    .run({ command: smbd, args: ['-b'], timeoutMs: ASK_MS })
    .catch(() => ({ stdout: '' }));
  const folder = /^[ \t]*MODULESDIR:[ \t]*(\S.*)$/m.exec(stdout)?.[1]?.trim();
  if (folder === undefined) return false;
  const found = await Promise.all(MODULES.map((name) => locateReadable([join(folder, 'vfs', `${name}.so`)])));
  return found.every((file) => file !== undefined);
}
