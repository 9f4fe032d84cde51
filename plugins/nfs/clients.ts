/** Who is connected, for people: one session for each machine. */
import type { ClientSession, TcpClient } from 'mountkeeper';

export function sessionsOf(connections: readonly TcpClient[]): readonly ClientSession[] {
  return [...new Set(connections.map(({ address }) => address))].map((address) => {
    const own = connections.filter((one) => one.address === address);
    return {
      id: address,
      user: null,
      address,
      shares: null,
      since: null,
      lastAt: null,
      bytesToClient: sum(own.map(({ bytesToClient }) => bytesToClient)),
      bytesFromClient: sum(own.map(({ bytesFromClient }) => bytesFromClient)),
    };
  });
}

/** Not known when one of them is not. */
function sum(counts: readonly (number | null)[]): number | null {
  return counts.reduce((all, one) => (all === null || one === null ? null : all + one), 0);
}
