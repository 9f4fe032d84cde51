import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The paths of everything that the proxy owns. */
export interface WebdavPaths {
  readonly root: string;
  /** Where nobody but the proxy writes. */
  readonly own: string;
  /** Socket on which the daemon controls the proxy. */
  readonly control: string;
  /** What the proxy notes of running uploads. */
  readonly journal: string;
  /** The folder of the sockets below. */
  readonly sockets: string;
  /** Socket on which the mount's own process serves a share. */
  socket(share: string): string;
  /**
   * Socket of a server beside the mount of a share: another one at each call. Who still has the former one's address
   * and password must find nobody there: its successor would refuse what can be sent once more.
   */
  freshSocket(share: string): string;
}

/** Longest path of a socket in bytes, set by the kernel. */
const LONGEST_SOCKET = 107;

export function webdavPaths(stateDir: string): WebdavPaths {
  const root = join(stateDir, 'webdav');
  return {
    root,
    own: join(root, 'own'),
    control: join(root, 'own', 'control'),
    journal: join(root, 'journal'),
    sockets: join(root, 's'),
    // A hash, because names of shares may be longer than the kernel allows.
    socket: (share) => join(root, 's', createHash('sha256').update(share).digest('hex').slice(0, 12)),
    freshSocket: (share) => join(root, 's', `${beginOf(share)}${randomBytes(3).toString('base64url')}`),
  };
}

/** With what follows no longer than the name of a mount's own socket. */
function beginOf(share: string): string {
  return createHash('sha256').update(share).digest('base64url').slice(0, 8);
}

/** Removes what killed servers beside the mount of a share have left. To be called while none of them runs. */
export async function removeFreshSockets({ sockets }: WebdavPaths, share: string): Promise<void> {
  const left = (await readdir(sockets)).filter((name) => name.startsWith(beginOf(share)));
  await Promise.all(left.map((name) => rm(join(sockets, name), { force: true })));
}

/** Why no server can use these paths; undefined when one can. */
export function pathsProblem(paths: WebdavPaths): string | undefined {
  const excess = Buffer.byteLength(paths.socket('')) - LONGEST_SOCKET;
  if (excess <= 0) return undefined;
  return (
    `the path ${paths.root} is too long for the server's sockets; ` +
    `choose a supervisor.state_dir that is ${excess} bytes shorter`
  );
}

export async function preparePaths(paths: WebdavPaths): Promise<void> {
  for (const folder of [paths.root, paths.sockets]) await mkdir(folder, { recursive: true, mode: 0o700 });
}
