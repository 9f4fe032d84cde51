import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Paths of everything that the private server owns. Nothing of the system's own Samba is read or written. */
export interface SmbPaths {
  readonly root: string;
  readonly conf: string;
  readonly shares: string;
  readonly users: string;
  /** How far smbd's output has been read. */
  readonly read: string;
  /** There while guests may be connected. */
  readonly guests: string;
  readonly nssPasswd: string;
  readonly nssGroup: string;
  readonly passdb: string;
  folder(name: PlaceFolder): string;
}

const FOLDERS = ['private', 'lock', 'state', 'cache', 'pid', 'ncalrpc', 'winbindd', 'log'] as const;
export type PlaceFolder = (typeof FOLDERS)[number];

/** The server's sockets are at most this much deeper; the kernel allows 107 bytes for a socket's path. */
const DEEPEST_SOCKET = '/ncalrpc/np/epmapper'.length + 8;
const LONGEST_ROOT = 107 - DEEPEST_SOCKET;

export function smbPaths(stateDir: string): SmbPaths {
  const root = join(stateDir, 'smb');
  return {
    root,
    conf: join(root, 'smb.conf'),
    shares: join(root, 'shares.json'),
    users: join(root, 'users.json'),
    read: join(root, 'output-read.json'),
    guests: join(root, 'guests'),
    nssPasswd: join(root, 'nss_passwd'),
    nssGroup: join(root, 'nss_group'),
    passdb: join(root, 'private', 'passdb.tdb'),
    folder: (name) => join(root, name),
  };
}

/** Why no server can use these paths; undefined when one can. */
export function pathsProblem({ root }: SmbPaths): string | undefined {
  if (Buffer.byteLength(root) > LONGEST_ROOT)
    return (
      `the path ${root} is too long for the server's sockets; ` +
      `choose a supervisor.state_dir of at most ${LONGEST_ROOT - 4} bytes`
    );
  if (/[%\n\r]/.test(root))
    return `the path ${root} holds a "%" or a line break, which smbd cannot take; choose another supervisor.state_dir`;
  return undefined;
}

export async function preparePaths(paths: SmbPaths): Promise<void> {
  await mkdir(paths.root, { recursive: true, mode: 0o700 });
  for (const name of FOLDERS) await mkdir(paths.folder(name), { recursive: true, mode: 0o700 });
}
