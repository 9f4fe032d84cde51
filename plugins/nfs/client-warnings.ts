/** Machines that are named and reach nothing, and entries that let in every machine there is. */
import { isIP } from 'node:net';
import { isLoopback, isShownOver } from 'mountkeeper';
import type { Config, ConfigProblem, ShareConfig } from 'mountkeeper';
import { allows } from './config.ts';

const KEYS = ['clients', 'read_only_clients'] as const;

interface Entry {
  readonly path: string;
  readonly client: string;
}

export function clientWarnings(config: Config): readonly ConfigProblem[] {
  const { nfs, shares } = config;
  const general = entries('nfs.allowed_clients', nfs.allowed_clients);
  const ofShares = shares.flatMap((share, index) =>
    KEYS.flatMap((key) => entries(`shares[${index}].${key}`, share[key])),
  );
  const unshown = shares.flatMap((share, index) => notShown(config, share, index));
  const shown = nfs.enabled ? [...general, ...ofShares] : [];
  const found = [
    ...unshown,
    ...shown.flatMap(everybody),
    ...outOfReach(nfs.listen, shown),
    ...(nfs.enabled ? shares.flatMap(readAlone) : []),
  ];
  return found.map((problem) => ({ ...problem, isWarning: true }));
}

function entries(path: string, clients: readonly string[] = []): readonly Entry[] {
  return clients.map((client, index) => ({ path: `${path}[${index}]`, client }));
}

function notShown(config: Config, share: ShareConfig, index: number): readonly ConfigProblem[] {
  const key = KEYS.find((one) => share[one] !== undefined);
  if (key === undefined || (config.nfs.enabled && isShownOver(config, share.name, 'nfs'))) return [];
  const why = config.nfs.enabled ? 'its protocols leave "nfs" out' : 'nfs.enabled is false';
  return [
    { path: `shares[${index}].${key}`, message: `machines are named for share "${share.name}", but ${why}` },
  ];
}

function everybody({ path, client }: Entry): readonly ConfigProblem[] {
  if (!client.endsWith('/0')) return [];
  const message = `${path} is ${client}: every machine that reaches the port, and NFS asks for no password`;
  return [{ path, message }];
}

/** Where the server listens on loopback, other machines are named in vain. */
function outOfReach(listen: string, named: readonly Entry[]): readonly ConfigProblem[] {
  if (!isLoopback(listen)) return [];
  const { client } = named.find((one) => !isLoopback(one.client.split('/')[0] ?? '')) ?? {};
  if (client === undefined) return [];
  const message = `nfs.listen is ${listen}, which this machine alone reaches; ${client} is let in and cannot come`;
  return [{ path: 'nfs.listen', message }];
}

/** Who is in both may read alone, which is easily overlooked where one of them is a network. */
function readAlone(
  { clients = [], read_only_clients: read = [] }: ShareConfig,
  index: number,
): readonly ConfigProblem[] {
  return entries(`shares[${index}].clients`, clients).flatMap(({ path, client }) => {
    const around = read.find((network) => contains(network, client));
    if (around === undefined) return [];
    return [
      { path, message: `${path} is ${client}, which may read alone, since read_only_clients has ${around}` },
    ];
  });
}

function contains(network: string, client: string): boolean {
  const [host = '', bits = bitsOf(host)] = client.split('/');
  const [outer = '', outerBits = bitsOf(outer)] = network.split('/');
  return Number(outerBits) <= Number(bits) && allows([network], host);
}

function bitsOf(host: string): string {
  return isIP(host) === 6 ? '128' : '32';
}
