import type { Check, Config } from 'mountkeeper';
import { clientsOf, NOBODY } from './config.ts';
import { hasMountTable, MAKE_MOUNT_TABLE, missingPackages, NO_MOUNT_TABLE } from './ganesha.ts';

export async function checks(config: Config): Promise<readonly Check[]> {
  const { nfs } = config;
  if (!nfs.enabled) return [{ title: 'NFS', result: 'ok', detail: 'off (nfs.enabled)', advice: '' }];
  return [await serverCheck(), clientsCheck(config)];
}

async function serverCheck(): Promise<Check> {
  const title = 'NFS server';
  const missing = await missingPackages();
  if (missing.length > 0)
    return {
      title,
      result: 'error',
      detail: `not installed: ${missing.join(', ')}`,
      advice:
        `Install it: apt-get install ${missing.join(' ')}. ` +
        `The system's own NFS services are not needed and may stay off.`,
    };
  if (process.getuid?.() !== 0)
    return {
      title,
      result: 'error',
      detail: 'NFS-Ganesha needs root',
      advice: 'Run the daemon as root, or set nfs.enabled = false.',
    };
  if (!(await hasMountTable()))
    return { title, result: 'error', detail: NO_MOUNT_TABLE, advice: `As root, ${MAKE_MOUNT_TABLE}` };
  return { title, result: 'ok', detail: 'NFS-Ganesha is installed', advice: '' };
}

function clientsCheck(config: Config): Check {
  const title = 'NFS clients';
  const all = new Set([
    ...config.nfs.allowed_clients,
    ...config.shares
      .map(({ name }) => clientsOf(config, name))
      .flatMap(({ write, read }) => [...write, ...read]),
  ]);
  if (all.size === 0)
    return {
      title,
      result: 'warning',
      detail: NOBODY,
      advice: 'Name addresses or networks in nfs.allowed_clients, or set nfs.enabled = false.',
    };
  if ([...all].some((client) => client.endsWith('/0')))
    return {
      title,
      result: 'warning',
      detail: 'every machine is let in, without a password',
      advice:
        'Name only the addresses or networks that belong in nfs.allowed_clients, and in clients of shares.',
    };
  return { title, result: 'ok', detail: [...all].join(', '), advice: '' };
}
