import { isIP } from 'node:net';
import { Joi } from 'mountkeeper';

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
}

const address = () => Joi.string().ip({ cidr: 'forbidden' });

export const schema = Joi.object<NfsConfig, true>({
  enabled: Joi.boolean().default(false).description('Show the shares over NFS 4.'),
  port: Joi.number().integer().min(1).max(65_535).default(2049).description('TCP port.'),
  listen: address().default('127.0.0.1').description('Address to listen on; "0.0.0.0" or "::" is all of them.'),
  allowed_clients: Joi.array().items(Joi.string().ip({ cidr: 'optional' })).max(1_000).unique().default(['127.0.0.0/8', '::1'])
    .description('Addresses and networks whose machines are let in, every user of them. NFS knows no passwords.'),
}).meta({ tier: 'protocol' });

/** Whether one of the addresses or networks holds the address. IPv4 only is looked into; others must be named as they are. */
export function allows(clients: readonly string[], host: string): boolean {
  return clients.some((client) => {
    const [network = '', bits] = client.split('/');
    if (isIP(network) !== isIP(host)) return false;
    if (isIP(host) === 6) return network === host || bits === '0';
    const shift = 32 - Number(bits ?? 32);
    return shift >= 32 || number(network) >>> shift === number(host) >>> shift;
  });
}

function number(address4: string): number {
  return address4.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}
