/** What our mounts are measured against: the same rclone's `mount` with a cache and nothing else said. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { detachAll, isMounted, mountsBelow } from '../support/platform/mounted-file-systems.ts';
import { NAS_PASSWORD, NAS_USER } from '../support/nas/nas.ts';
import type { Nas } from '../support/nas/nas.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { until } from '../support/platform/wait.ts';

export interface BareMounts {
  readonly points: readonly string[];
  end(): Promise<void>;
}

export interface BareOptions {
  readonly nas: Nas;
  readonly count: number;
}

async function obscured(): Promise<string> {
  const child = spawn(currentRclone(), ['obscure', '-'], { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.end(NAS_PASSWORD);
  let text = '';
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  await once(child, 'close');
  return text.trim();
}

/**
 * Everything that can be done before the clock runs; the call starts all of them at once and resolves when
 * the kernel lists them.
 */
export async function prepareBareMounts(
  room: string,
  { nas, count }: BareOptions,
): Promise<() => Promise<BareMounts>> {
  const env = {
    PATH: process.env['PATH'],
    HOME: room,
    RCLONE_CONFIG: `${room}/none`,
    RCLONE_CONFIG_NAS_TYPE: 'sftp',
    RCLONE_CONFIG_NAS_HOST: '127.0.0.1',
    RCLONE_CONFIG_NAS_PORT: String(nas.port),
    RCLONE_CONFIG_NAS_USER: NAS_USER,
    RCLONE_CONFIG_NAS_PASS: await obscured(),
  };
  const points = Array.from({ length: count }, (_, index) => `${room}/bare-${index}`);
  for (const point of points) await mkdir(point, { recursive: true });
  return async () => {
    const children = points.map((point, index) =>
      spawn(
        currentRclone(),
        ['mount', 'nas:', point, '--vfs-cache-mode', 'full', '--cache-dir', `${room}/bare-cache-${index}`],
        { env, stdio: 'ignore' },
      ),
    );
    await until('bare mounts', async () => (await Promise.all(points.map(isMounted))).every(Boolean), {
      timeoutMs: 60_000,
      everyMs: 5,
    });
    return { points, end: () => end(room, children) };
  };
}

async function end(room: string, children: readonly ChildProcess[]): Promise<void> {
  const living = children.filter((child) => child.exitCode === null && child.signalCode === null);
  const ends = living.map((child) => once(child, 'exit'));
  living.forEach((child) => child.kill('SIGTERM'));
  await Promise.all(ends);
  await detachAll(await mountsBelow(room));
}
