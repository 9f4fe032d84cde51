/**
 * Looks into a daemon that was started with the probe: its heap after a collection, its handles and timers by
 * kind.
 */
import { createConnection } from 'node:net';
import { openFiles } from '../platform/processes.ts';

const PRELOAD = new URL('./heap-probe-preload.js', import.meta.url);

export interface Holdings {
  readonly heapUsed: number;
  readonly resources: Readonly<Record<string, number>>;
  readonly openFiles: number;
}

/** The environment that loads the probe into a daemon. */
export function probeEnv(socket: string): Record<string, string> {
  return { MOUNTKEEPER_TEST_PROBE: socket, NODE_OPTIONS: `--expose-gc --import ${PRELOAD.href}` };
}

/** Asks the probe on its socket. Rejects when the daemon is gone. */
export async function holdings(socket: string, pid: number): Promise<Holdings> {
  const pieces: Buffer[] = [];
  for await (const piece of createConnection(socket)) pieces.push(piece as Buffer);
  return {
    ...(JSON.parse(Buffer.concat(pieces).toString()) as Omit<Holdings, 'openFiles'>),
    openFiles: openFiles(pid),
  };
}
