import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Everything that the proxy owns. */
export interface Place {
  readonly root: string;
  /** Where the daemon steers the proxy. */
  readonly control: string;
  /** Where a share's own process serves it. */
  socket(share: string): string;
}

/** The kernel allows so many bytes for a socket's path. */
const LONGEST_SOCKET = 107;

export function placeIn(stateDir: string): Place {
  const root = join(stateDir, 'webdav');
  return {
    root,
    control: join(root, 'control.sock'),
    // Short: names of shares may be long, and the kernel allows little.
    socket: (share) => join(root, 's', createHash('sha256').update(share).digest('hex').slice(0, 12)),
  };
}

/** Why no server can live there; undefined when one can. */
export function placeProblem(place: Place): string | undefined {
  const excess = Buffer.byteLength(place.socket('')) - LONGEST_SOCKET;
  if (excess <= 0) return undefined;
  return `the path ${place.root} is too long for the server's sockets; choose a supervisor.state_dir that is ${excess} bytes shorter`;
}

export async function preparePlace(place: Place): Promise<void> {
  for (const folder of [place.root, join(place.root, 's')])
    await mkdir(folder, { recursive: true, mode: 0o700 });
}
