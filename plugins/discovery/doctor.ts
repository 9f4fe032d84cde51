import { networkInterfaces } from 'node:os';
import type { Check, Exporter, ExportersService, ListenAddress } from 'mountkeeper';
import { locateWsdd } from './wsdd.ts';

export async function checks(exporters: ReturnType<ExportersService['list']>): Promise<readonly Check[]> {
  const open = exporters.filter(({ exporter }) => isOpen(exporter));
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
    detail: `${open.map(({ protocol }) => protocol).join(', ')} by multicast DNS`,
    advice: '',
  };
  const smb = open.find(({ protocol }) => protocol === 'smb')?.exporter.listensAt;
  return smb ? [mdns, await windowsCheck(smb)] : [mdns];
}

async function windowsCheck({ port }: ListenAddress): Promise<Check> {
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
      'Install it: apt-get install wsdd. Its own service is not needed and may stay off. ' +
      'Entering \\\\address\\share works without.',
  };
}

/** It is reached from other machines. */
function isOpen({ isEnabled = true, listensAt }: Exporter): boolean {
  const loopback = Object.values(networkInterfaces()).flatMap((entries = []) =>
    entries.filter((one) => one.internal).map((one) => one.address),
  );
  const isOwn = (entry: string): boolean =>
    entry.startsWith('127.') || entry === '::1' || entry === 'lo' || loopback.includes(entry);
  return isEnabled && (listensAt?.addresses ?? []).some((entry) => !isOwn(entry));
}
