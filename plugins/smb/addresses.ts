import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { portProblem, spellingOf } from 'mountkeeper';

export interface Listening {
  /** The entries of `listen` that exist now, for the server's configuration; empty: all addresses. */
  readonly interfaces: readonly string[];
  /** Where a client on this machine reaches the server. */
  readonly addresses: readonly string[];
  readonly missing: readonly string[];
}

export type Interfaces = Readonly<
  Record<string, readonly { readonly address: string; readonly internal: boolean }[] | undefined>
>;

/** The entries of `listen` that this machine has. Throws a sentence when it has none of them. */
export function resolveListen(
  listen: readonly string[],
  present: Interfaces = networkInterfaces(),
): Listening {
  if (listen.some((entry) => entry === '0.0.0.0' || entry === '::'))
    return { interfaces: [], addresses: ['127.0.0.1'], missing: [] };
  const found = listen.map((entry) => ({ entry, addresses: addressesOf(entry, present) }));
  const here = found.filter(({ addresses }) => addresses.length > 0);
  const missing = found.filter(({ addresses }) => addresses.length === 0).map(({ entry }) => entry);
  if (here.length === 0)
    throw new Error(
      `${missing.join(', ')}: this machine has no such address or network interface; ` +
        'correct smb.listen, or bring the network up',
    );
  return {
    interfaces: here.map(({ entry }) => entry),
    addresses: [...new Set(here.flatMap(({ addresses }) => addresses))],
    missing,
  };
}

export function addressesOf(entry: string, present: Interfaces): readonly string[] {
  const all = Object.values(present).flatMap((list) => list ?? []);
  if (isIP(entry) !== 0)
    return isLoopback(entry) || all.some((one) => spellingOf(one.address) === spellingOf(entry))
      ? [spellingOf(entry)]
      : [];
  const own = (present[entry] ?? []).map((one) => one.address);
  return own.filter((address) => !address.startsWith('fe80:'));
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.');
}

/** Why the port cannot be used at one of the addresses; undefined when it can. */
export async function listenProblem(
  port: number,
  { interfaces, addresses }: Listening,
): Promise<string | undefined> {
  for (const host of interfaces.length === 0 ? ['0.0.0.0'] : addresses) {
    const problem = await portProblem({ host, port }, { section: 'smb', suspect: 'a Samba of the system' });
    if (problem !== undefined) return problem;
  }
  return undefined;
}
