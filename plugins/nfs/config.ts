import { BlockList, isIP } from 'node:net';
import { Joi, spellingOf } from 'mountkeeper';
import type { Config } from 'mountkeeper';

export interface NfsConfig {
  enabled: boolean;
  port: number;
  listen: string;
  allowed_clients: string[];
}

declare module 'mountkeeper' {
  interface Config {
    nfs: NfsConfig;
  }
  interface ShareConfig {
    /** Addresses and networks. None in this and in `read_only_clients`: those of `nfs.allowed_clients`. */
    clients?: string[];
    read_only_clients?: string[];
  }
}

/** Which machines may mount a share; one in both may read alone. */
export interface ShareClients {
  readonly write: readonly string[];
  readonly read: readonly string[];
}

/**
 * The address is copied into the server's configuration: other notations, or leading zeros, must not get
 * there.
 */
function address(cidr: 'forbidden' | 'optional') {
  const wanted = `{{#label}} must be an address${cidr === 'optional' ? ' or a network such as 192.168.1.0/24' : ''}`;
  return Joi.string()
    .ip({ version: ['ipv4', 'ipv6'], cidr })
    .custom((value: string, helpers) =>
      isIP(value.split('/')[0] ?? '') === 0 ? helpers.error('string.ipVersion') : value,
    )
    .messages({ 'string.ip': wanted, 'string.ipVersion': wanted });
}

export const schema = Joi.object<NfsConfig, true>({
  enabled: Joi.boolean().default(false).description('Show the shares over NFS 4.'),
  port: Joi.number().integer().min(1).max(65_535).default(2049).description('TCP port.'),
  listen: address('forbidden')
    .default('127.0.0.1')
    .meta({ names: 'address' })
    .description('Address to listen on; "0.0.0.0" or "::" is all of them.'),
  allowed_clients: Joi.array()
    .items(address('optional'))
    .max(1_000)
    .unique()
    .default([])
    .meta({ entry: true })
    .description(
      'Addresses and networks whose machines may mount the shares; nobody may until some are named. ' +
        'NFS knows no passwords: ' +
        'every user of such a machine reads and writes as the user of the daemon, loopback means every ' +
        'user of this machine.',
    ),
}).meta({ tier: 'protocol' });

/** The server knows such a client by its IPv4 address, so such an entry would mean nobody. */
export function isMapped(client: string): boolean {
  const [host = ''] = client.split('/');
  return isIP(host) === 6 && /^::ffff:[0-9a-f]+:[0-9a-f]+$/.test(spellingOf(host));
}

function clientsOfShare(description: string) {
  return Joi.array()
    .items(
      address('optional').custom((value: string, helpers) =>
        isMapped(value)
          ? helpers.message({ custom: '{{#label}} is an IPv4 address in the form of IPv6; write it as IPv4' })
          : value,
      ),
    )
    .min(1)
    .max(1_000)
    .optional()
    .messages({
      'array.min':
        '{{#label}} names nobody; leave the key out, or leave "nfs" out of the protocols of the share',
    })
    .meta({ tier: 'protocol', entry: true })
    .description(description);
}

export const shareSchema = Joi.object({
  clients: clientsOfShare(
    'Addresses and networks whose machines may mount it over NFS, in place of nfs.allowed_clients. Named in ' +
      'neither this nor read_only_clients: those of nfs.allowed_clients.',
  ).example(['192.168.1.20']),
  read_only_clients: clientsOfShare(
    'Addresses and networks whose machines may mount it over NFS and change nothing, also where clients names ' +
      'them, too.',
  ).example(['192.168.1.0/24']),
});

/** A share that the document does not have may be mounted by nobody. */
export function clientsOf({ shares, nfs }: Config, shareName: string): ShareClients {
  const share = shares.find(({ name }) => name === shareName);
  if (!share) return { write: [], read: [] };
  const { clients = [], read_only_clients: read = [] } = share;
  const isNamed = clients.length > 0 || read.length > 0;
  return { write: isNamed ? clients : nfs.allowed_clients, read };
}

/** Message for NFS that is on while nobody may use it, which is the default. */
export const NOBODY =
  'nfs.allowed_clients is empty: no machine may mount the shares over NFS; name addresses or networks there';

/** Whether one of the addresses or networks contains the address. */
export function allows(clients: readonly string[], host: string): boolean {
  const family = isIP(host) === 6 ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  for (const client of clients) {
    const [network = '', bits = family === 'ipv6' ? '128' : '32'] = client.split('/');
    if (isIP(network) === isIP(host)) list.addSubnet(network, Number(bits), family);
  }
  return list.check(host, family);
}
