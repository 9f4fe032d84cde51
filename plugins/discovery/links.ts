import { networkInterfaces } from 'node:os';
import type { Offer } from 'mountkeeper';

/** One network that this machine is part of, and what is served on it. */
export interface Link {
  readonly interfaceName: string;
  /** The IPv4 address of the interface that queries and answers use. */
  readonly address: string;
  /** The network whose machines may ask: that address with its prefix length. */
  readonly network: string;
  /** Addresses at which something is served on this network. */
  readonly addresses: readonly string[];
  readonly offers: readonly Offer[];
}

type Interfaces = Readonly<
  Record<
    string,
    | readonly {
        readonly address: string;
        readonly family: string;
        readonly internal: boolean;
        readonly cidr: string | null;
      }[]
    | undefined
  >
>;

/** The networks on which something is offered; never loopback. */
export function linksOf(offers: readonly Offer[], present?: Interfaces): readonly Link[] {
  if (offers.length === 0) return [];
  return Object.entries(present ?? networkInterfaces()).flatMap(([interfaceName, entries = []]) => {
    const own = entries.filter((one) => !one.internal && !one.address.startsWith('fe80:'));
    const iface = own.find((one) => one.family === 'IPv4');
    if (!iface) return [];
    const heard = offers
      .map((offer) => ({ offer, at: own.filter((one) => listensAt(offer, one)).map((one) => one.address) }))
      .filter(({ at }) => at.length > 0);
    if (heard.length === 0) return [];
    const addresses = own
      .map((one) => one.address)
      .filter((address) => heard.some(({ at }) => at.includes(address)));
    return [
      {
        interfaceName,
        address: iface.address,
        network: iface.cidr ?? `${iface.address}/32`,
        addresses,
        offers: heard.map(({ offer }) => offer),
      },
    ];
  });
}

function listensAt(
  { addresses }: Offer,
  { address, family }: { readonly address: string; readonly family: string },
): boolean {
  return (
    addresses.includes(address) ||
    addresses.includes('::') ||
    (family === 'IPv4' && addresses.includes('0.0.0.0'))
  );
}

export function ownAddresses(present: Interfaces = networkInterfaces()): ReadonlySet<string> {
  return new Set(Object.values(present).flatMap((entries = []) => entries.map((one) => one.address)));
}
