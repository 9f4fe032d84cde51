/** Real mounts that hang, in both of the ways that mounts do. Their paths are for helper children alone. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createMountTable } from '../../../core/platform/mounts/mount-table.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import type { Scratch } from './scratch-folder.ts';
import { until } from './wait.ts';

/** Mounts that hang need FUSE, and root to end them. */
export const CAN_HANG_A_MOUNT = existsSync('/dev/fuse') && process.getuid?.() === 0;

export interface HangingMount {
  readonly mountPoint: string;
  /** Stops the process behind it: no call into the mount returns, though a caller that is killed can end. */
  hang(): void;
  /** Ends the process behind it: every call into it ends. */
  end(): Promise<void>;
}

/** Over a local folder that holds one folder, `folder`. Ended with the scratch folder, whatever happens. */
export async function mountToHang(scratch: Scratch): Promise<HangingMount> {
  await mkdir(scratch.path('remote', 'folder'), { recursive: true });
  return mountOf(scratch, [scratch.path('remote'), '--attr-timeout', '1ms']);
}

/**
 * Over a server that takes connections and never answers: a listing is on its way for ever, and its caller
 * immune to SIGKILL.
 */
export async function mountOfSilence(
  scratch: Scratch,
): Promise<HangingMount & { readonly isAsked: () => boolean }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  scratch.defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const mount = await mountOf(scratch, [':http:', '--http-url', url, '--http-no-head']);
  // Once the server is asked, the mount has taken the caller's request: from then on only its end frees the
  // caller.
  return { ...mount, isAsked: () => sockets.size > 0 };
}

async function mountOf(scratch: Scratch, remote: readonly string[]): Promise<HangingMount> {
  const mountPoint = scratch.path('mount 照');
  await mkdir(mountPoint);
  const rclone = spawn(
    currentRclone(),
    [
      'mount',
      ...remote.slice(0, 1),
      mountPoint,
      ...remote.slice(1),
      '--config',
      '/dev/null',
      '--cache-dir',
      scratch.path('cache'),
    ],
    { stdio: 'ignore' },
  );
  const ended = once(rclone, 'exit');
  const end = async (): Promise<void> => {
    rclone.kill('SIGKILL');
    await ended;
  };
  scratch.defer(end);
  await until('mounted', () => createMountTable().find(mountPoint), { timeoutMs: 30_000 });
  return { mountPoint, hang: () => stopWhole(rclone), end };
}

/** A thread that has not stopped yet may still answer: returns once all have. */
function stopWhole(child: ChildProcess): void {
  child.kill('SIGSTOP');
  const tasks = `/proc/${child.pid}/task`;
  const stopped = (): boolean =>
    readdirSync(tasks).every((task) => readFileSync(`${tasks}/${task}/stat`, 'latin1').includes(') T '));
  for (let look = 0; look < 10_000 && !stopped(); look += 1);
}
