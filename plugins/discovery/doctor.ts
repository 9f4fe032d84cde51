import { networkInterfaces } from 'node:os';
import type { Check, Config } from 'mountkeeper';
import { locateWsdd } from './wsdd.ts';

const PROTOCOLS = ['smb', 'nfs', 'webdav'] as const;

interface Server {
  readonly enabled?: boolean;
  readonly port?: number;
  readonly listen?: string | readonly string[];
}

export async function checks(config: Config): Promise<readonly Check[]> {
  const open = PROTOCOLS.filter((protocol) => isOpen(serverOf(config, protocol)));
  if (open.length === 0)
    return [
      {
        title: 'Discovery',
        result: 'ok',
        detail: 'nothing is announced: nothing is served beyond this machine',
        advice: '',
      },
    ];
  const mdns: Check = {
    title: 'Discovery for macOS and Linux',
    result: 'ok',
    detail: `${open.join(', ')} by multicast DNS`,
    advice: '',
  };
  return open.includes('smb') ? [mdns, await windowsCheck(serverOf(config, 'smb'))] : [mdns];
}

async function windowsCheck({ port }: Server): Promise<Check> {
  const title = 'Discovery for Windows';
  if (port !== 445)
    return {
      title,
      result: 'ok',
      detail: `off: Explorer knows only port 445, and smb.port is ${port}`,
      advice: '',
    };
  if ((await locateWsdd()) !== undefined) return { title, result: 'ok', detail: 'wsdd', advice: '' };
  return {
    title,
    result: 'warning',
    detail: 'wsdd is not installed, so this machine does not show in Explorer',
    advice:
      'Install it: apt-get install wsdd. Its own service is not needed and may stay off. Entering \\\\address\\share works without.',
  };
}

function serverOf(config: Config, protocol: string): Server {
  return (config as unknown as Readonly<Record<string, Server | undefined>>)[protocol] ?? {};
}

function isOpen({ enabled, listen }: Server): boolean {
  const loopback = Object.values(networkInterfaces()).flatMap((entries = []) =>
    entries.filter((one) => one.internal).map((one) => one.address),
  );
  const isOwn = (entry: string): boolean =>
    entry.startsWith('127.') || entry === '::1' || entry === 'lo' || loopback.includes(entry);
  return enabled === true && [listen ?? []].flat().some((entry) => !isOwn(entry));
}
