/** Who is connected to a port of this machine, as the kernel says (`ss`, of iproute2). */
import { readdir, readlink } from 'node:fs/promises';
import type { Processes } from '../../contract/platform.ts';

const ASK_MS = 3_000;
const MOST_OUTPUT_BYTES = 8 * 1_048_576;

/** The client's end of a connection. Bytes are those of the connection so far; null: an old kernel. */
export interface TcpClient {
  readonly address: string;
  readonly port: number;
  readonly bytesToClient: number | null;
  readonly bytesFromClient: number | null;
}

/** Connections to the port, but for this process's own. Rejects with a sentence when it cannot be told. */
export async function tcpClients(processes: Processes, port: number): Promise<readonly TcpClient[]> {
  const before = await ownSockets();
  const { code, stdout, stderr } = await processes.run({
    command: 'ss',
    args: ['-tnieOH', 'state', 'established', `( sport = :${port} or dport = :${port} )`],
    timeoutMs: ASK_MS,
    maxOutputBytes: MOST_OUTPUT_BYTES,
  });
  if (code !== 0) throw new Error(`ss ended with ${code}: ${stderr.trim()}`);
  const connections = stdout.split('\n').flatMap((line) => connectionOf(line) ?? []);
  // Those that were closed while ss looked, too.
  const inodes = new Set([...before, ...(await ownSockets())]);
  const own = new Set(connections.filter(({ inode }) => inodes.has(inode)).map(({ local }) => local.text));
  return connections
    .filter(({ local, peer }) => local.port === port && !own.has(peer.text))
    .map(({ peer, sent, received }) => ({
      address: peer.address,
      port: peer.port,
      bytesToClient: sent,
      bytesFromClient: received,
    }));
}

interface End {
  readonly text: string;
  readonly address: string;
  readonly port: number;
}

interface Connection {
  readonly local: End;
  readonly peer: End;
  readonly inode: string;
  readonly sent: number | null;
  readonly received: number | null;
}

/** The queues, both ends, and then pairs of names and numbers. */
const LINE = /^\s*\d+\s+\d+\s+(\S+)\s+(\S+)\s(.*)$/;

function connectionOf(line: string): Connection | undefined {
  const [, local, peer, rest = ''] = LINE.exec(line) ?? [];
  const ends = [endOf(local), endOf(peer)] as const;
  if (!ends[0] || !ends[1]) return undefined;
  const named = new Map([...rest.matchAll(/\b([a-z_]+):(\d+)/g)].map(([, name, value]) => [name, value]));
  // The kernel leaves out what is 0, and old ones say neither.
  const isCounted = ['bytes_sent', 'bytes_acked', 'bytes_received'].some((name) => named.has(name));
  const count = (name: string): number | null => (isCounted ? Number(named.get(name) ?? 0) : null);
  return {
    local: ends[0],
    peer: ends[1],
    inode: named.get('ino') ?? '',
    sent: count('bytes_acked'),
    received: count('bytes_received'),
  };
}

/** `192.0.2.1:445`, `[fe80::1%eth0]:445` or `[fe80::1]%eth0:445`. */
function endOf(text = ''): End | undefined {
  const colon = text.lastIndexOf(':');
  const [bare = ''] = text.slice(0, Math.max(colon, 0)).split('%');
  const address = bare.replace('[', '').replace(']', '');
  const port = text.slice(colon + 1);
  if (address === '' || !/^\d+$/.test(port)) return undefined;
  // An IPv4 client of a server that listens for both.
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return { text: `${plain} ${port}`, address: plain, port: Number(port) };
}

async function ownSockets(): Promise<ReadonlySet<string>> {
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(
    // Closed meanwhile.
    names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')),
  );
  return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
}
