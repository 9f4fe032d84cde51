import { networkInterfaces } from 'node:os';
import type { Offer } from 'mountkeeper';

/** One network that this machine is part of, and what clients in it find here. */
export interface Link {
  readonly interfaceName: string;
  /** The IPv4 address that questions and answers go through. */
  readonly address: string;
  /** Whose machines may ask: that address with the length of its network's prefix. */
  readonly network: string;
  /** Addresses at which something is served to this network. */
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

/** The networks that something is offered to; never the machine itself. */
export function linksOf(offers: readonly Offer[], present?: Interfaces): readonly Link[] {
  if (offers.length === 0) return [];
  return Object.entries(present ?? networkInterfaces()).flatMap(([interfaceName, entries = []]) => {
    const own = entries.filter((one) => !one.internal && !one.address.startsWith('fe80:'));
    const door = own.find((one) => one.family === 'IPv4');
    if (!door) return [];
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
        address: door.address,
        network: door.cidr ?? `${door.address}/32`,
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
