import { readdirSync, readlinkSync } from 'node:fs';
import type { NasAddress, Processes } from 'mountkeeper';

/** From iproute2; it lists connections, and can close them in the kernel. */
export const SS = 'ss';
const ASK_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 4 * 1_048_576;
/**
 * An upload moves more bytes than this; a few requests that nobody answers may still be acknowledged by the
 * kernel of the NAS or by a router.
 */
const MOVES_BYTES = 65_536;

/** One TCP connection as `ss` shows it. */
export interface Connection {
  readonly inode: string;
  readonly local: string;
  readonly remote: string;
  /** Bytes that the other side has acknowledged. */
  readonly acked: number;
  readonly received: number;
}

/** TCP connections of one process to its NAS. */
export interface TcpConnections {
  /** Undefined when they cannot be listed. */
  look(): Promise<readonly Connection[] | undefined>;
  /** Closes those on which nothing has moved since the last look, and returns their number. */
  cut(before: readonly Connection[]): Promise<number>;
}

export interface TcpConnectionSource {
  readonly pid: number;
  readonly nas: NasAddress;
  /** Port of the process's own remote control, which is never touched. */
  readonly rcPort: number;
  readonly processes: Pick<Processes, 'run'>;
}

/**
 * A request on a connection that has gone silent waits for its whole time limit, and rclone has no call
 * that ends it. The kernel can close the connection: reads on it then fail at once, and uploads are
 * repeated on a new one. Only connections of this process are closed, found by its descriptors, and those
 * on which bytes still move are left alone.
 */
export function createTcpConnections(source: TcpConnectionSource): TcpConnections {
  const look = async (): Promise<readonly Connection[] | undefined> => {
    const { code, stdout } = await ask(source, [
      '-i',
      '-e',
      '-O',
      'state',
      'connected',
      'dport',
      '=',
      `:${source.nas.port}`,
    ]);
    return code === 0 ? ownAmong(parseConnections(stdout), source) : undefined;
  };
  return {
    // Unknown: the circuit breaker works without it.
    look: () => look().catch(() => undefined),
    cut: async (before) => {
      const known = new Map(before.map((one) => [one.inode, one]));
      const silent = ((await look()) ?? []).filter((one) => isSilent(one, known.get(one.inode)));
      await Promise.all(silent.map(({ local, remote }) => ask(source, ['-K', 'src', local, 'dst', remote])));
      return silent.length;
    },
  };
}

/** A new connection without a received byte hangs while it is being opened. */
function isSilent({ acked, received }: Connection, before: Connection | undefined): boolean {
  if (before === undefined) return received === 0;
  return received === before.received && acked - before.acked < MOVES_BYTES;
}

function ask({ processes }: TcpConnectionSource, args: readonly string[]): ReturnType<Processes['run']> {
  return processes.run({
    command: SS,
    args: ['-t', '-n', '-H', ...args],
    timeoutMs: ASK_TIMEOUT_MS,
    maxOutputBytes: MAX_ANSWER_BYTES,
  });
}

/** Parses lines of `ss -tnieHO`. */
export function parseConnections(text: string): readonly Connection[] {
  return text.split('\n').flatMap((line) => {
    const [, , , local, remote] = line.trim().split(/\s+/);
    const inode = /\bino:(\d+)/.exec(line)?.[1];
    if (local === undefined || remote === undefined || inode === undefined || inode === '0') return [];
    const count = (name: string): number => Number(new RegExp(`\\b${name}:(\\d+)`).exec(line)?.[1] ?? 0);
    return [{ inode, local, remote, acked: count('bytes_acked'), received: count('bytes_received') }];
  });
}

function ownAmong(
  connections: readonly Connection[],
  { pid, nas, rcPort }: TcpConnectionSource,
): readonly Connection[] {
  const own = socketsOf(pid);
  const isThere = ({ remote }: Connection): boolean =>
    !/^[\d.]+$/.test(nas.host) ||
    remote.replace('::ffff:', '').replaceAll(/[[\]]/g, '').startsWith(`${nas.host}:`);
  return connections.filter((one) => own.has(one.inode) && isThere(one) && !one.local.endsWith(`:${rcPort}`));
}

/** Inodes of the sockets that a process has open. */
export function socketsOf(pid: number): ReadonlySet<string> {
  return new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        // Closed meanwhile.
        return [];
      }
    }),
  );
}
