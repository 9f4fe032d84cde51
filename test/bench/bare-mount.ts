/** What our mounts are measured against: the same rclone's `mount` with a cache and nothing else said. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { detachAll, isMounted, mountsBelow } from '../support/platform/mounted-file-systems.ts';
import type { ConnectionText } from '../support/config/config-text.ts';
import { NAS_PASSWORD } from '../support/nas/nas.ts';
import type { Nas } from '../support/nas/nas.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { until } from '../support/platform/wait.ts';

export interface BareMounts {
  readonly points: readonly string[];
  readonly pids: readonly number[];
  end(): Promise<void>;
}

export interface BareOptions {
  readonly nas: Nas;
  readonly count: number;
  /** Options of `rclone mount` beside the cache. */
  readonly args?: readonly string[];
}

/** A connection as rclone takes it from its environment. */
async function remoteIn({ type, options = {} }: ConnectionText): Promise<Record<string, string>> {
  const told = Object.entries({ ...options, type, pass: await obscured() });
  return Object.fromEntries(
    told.map(([name, value]) => [`RCLONE_CONFIG_NAS_${name.toUpperCase()}`, String(value)]),
  );
}

async function obscured(): Promise<string> {
  const child = spawn(currentRclone(), ['obscure', '-'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
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
  { nas, count, args = [] }: BareOptions,
): Promise<() => Promise<BareMounts>> {
  const env = {
    PATH: process.env['PATH'],
    HOME: room,
    RCLONE_CONFIG: `${room}/none`,
    ...(await remoteIn(nas.connection('nas'))),
  };
  const points = Array.from({ length: count }, (_, index) => `${room}/bare-${index}`);
  for (const point of points) await mkdir(point, { recursive: true });
  return async () => {
    const children = points.map((point, index) =>
      spawn(
        currentRclone(),
        [
          'mount',
          'nas:',
          point,
          '--vfs-cache-mode',
          'full',
          '--cache-dir',
          `${room}/bare-cache-${index}`,
          ...args,
        ],
        { env, stdio: 'ignore' },
      ),
    );
    await until('bare mounts', async () => (await Promise.all(points.map(isMounted))).every(Boolean), {
      timeoutMs: 60_000,
      everyMs: 5,
    });
    const pids = children.map(({ pid }) => pid!);
    return { points, pids, end: () => end(room, children) };
  };
}

async function end(room: string, children: readonly ChildProcess[]): Promise<void> {
  const living = children.filter((child) => child.exitCode === null && child.signalCode === null);
  const ends = living.map((child) => once(child, 'exit'));
  living.forEach((child) => child.kill('SIGTERM'));
  await Promise.all(ends);
  await detachAll(await mountsBelow(room));
}
