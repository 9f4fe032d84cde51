/** Looks for servers of files that announce themselves by multicast DNS. What it hears is a stranger's text. */
import type { RemoteInfo } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { BlockList } from 'node:net';
import type multicastDns from 'multicast-dns';
import type { Answer } from 'dns-packet';
import type { ResponsePacket } from 'multicast-dns';
import type { Clock, FoundNas, Logger, NasFinder } from 'mountkeeper';
import { ownAddresses } from './links.ts';
import { nasIn, SERVICE_TYPES } from './nas-records.ts';

/** Answers to a question for all may be delayed by up to half a second (RFC 6762, 6). */
const LOOK_MS = 2_000;
/** Asked again: datagrams get lost, and what an answer only names is asked for. */
const ASK_AGAIN_MS = 700;
/** More than a network of honest servers ever says; what comes later is not looked at. */
const MOST_RECORDS = 500;

/** A network of this machine, by its IPv4 address there. */
export interface Network {
  readonly address: string;
  /** With its prefix length: `192.168.1.0/24`. */
  readonly cidr: string;
}

export interface FinderOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly networks?: () => readonly Network[];
  /** Addresses that are no NAS, but this machine. */
  readonly own?: () => ReadonlySet<string>;
}

export function createNasFinder(options: FinderOptions): NasFinder {
  const { networks = presentNetworks, own = ownAddresses } = options;
  return {
    async find(signal) {
      const mine = own();
      const heard = await Promise.all(networks().map((network) => ask(network, mine, options, signal)));
      const byPlace = new Map(heard.flat().map((nas) => [`${nas.kind} ${nas.address}`, nas]));
      return [...byPlace.values()].sort((a, b) => a.name.localeCompare(b.name)).slice(0, MOST_FOUND);
    },
  };
}

const MOST_FOUND = 32;

function presentNetworks(): readonly Network[] {
  return Object.values(networkInterfaces()).flatMap((entries = []) =>
    entries
      .filter(({ family, internal, cidr }) => family === 'IPv4' && !internal && cidr !== null)
      .map(({ address, cidr }) => ({ address, cidr: cidr ?? '' })),
  );
}

/** Never rejects: a network where nobody can be asked has no NAS to offer. */
async function ask(
  network: Network,
  own: ReadonlySet<string>,
  { clock, log }: FinderOptions,
  signal?: AbortSignal,
): Promise<readonly FoundNas[]> {
  const inside = blockOf(network);
  const records: Answer[] = [];
  let mdns: multicastDns.MulticastDNS | undefined;
  const over = new AbortController();
  const end = (): void => over.abort();
  signal?.addEventListener('abort', end, { once: true });
  try {
    signal?.throwIfAborted();
    const { default: createMdns } = await import('multicast-dns');
    mdns = createMdns({ interface: network.address, bind: '0.0.0.0' } as multicastDns.Options);
    mdns.on('error', (error) => {
      log.debug({ network: network.cidr, reason: error.message }, 'nobody can be asked for a NAS');
      end();
    });
    mdns.on('warning', () => undefined);
    mdns.on('response', ({ answers = [], additionals = [] }: ResponsePacket, { address }: RemoteInfo) => {
      // Others on this machine's other networks are heard by their own socket.
      if (!inside.check(address)) return;
      records.push(...[...answers, ...additionals].slice(0, MOST_RECORDS - records.length));
    });
    const began = clock.monotonic();
    while (clock.monotonic() - began < LOOK_MS) {
      mdns.query({ questions: questionsFor(records) });
      await clock.sleep(ASK_AGAIN_MS, over.signal);
    }
  } catch (error) {
    if (!over.signal.aborted)
      log.debug({ network: network.cidr, err: error }, 'nobody can be asked for a NAS');
  } finally {
    signal?.removeEventListener('abort', end);
    mdns?.destroy();
  }
  return nasIn(records, (address) => inside.check(address) && !own.has(address));
}

const MOST_QUESTIONS = 40;

/** The types, and what answers named without saying where it is: most servers say all of it at once. */
function questionsFor(records: readonly Answer[]): { name: string; type: never }[] {
  const isKnown = (name: string, type: string): boolean =>
    records.some((one) => one.type === type && one.name.toLowerCase() === name.toLowerCase());
  const unknown = (names: readonly string[], type: string): { name: string; type: never }[] =>
    [...new Set(names)].filter((name) => !isKnown(name, type)).map((name) => ({ name, type: type as never }));
  const hosts = records.flatMap((one) => (one.type === 'SRV' ? [one.data.target] : []));
  const instances = records.flatMap((one) =>
    one.type === 'PTR' && SERVICE_TYPES.includes(one.name.toLowerCase()) ? [one.data] : [],
  );
  const types = SERVICE_TYPES.map((name) => ({ name, type: 'PTR' as never }));
  return [...types, ...unknown(hosts, 'A'), ...unknown(instances, 'SRV')].slice(0, MOST_QUESTIONS);
}

function blockOf({ cidr }: Network): BlockList {
  const block = new BlockList();
  const [network = '', prefix] = cidr.split('/');
  block.addSubnet(network, Number(prefix), 'ipv4');
  return block;
}
