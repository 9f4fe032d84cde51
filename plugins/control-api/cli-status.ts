/** `mountkeeper status`: a table for people, the API's own JSON for machines. */
import type { CliCommand, CliContext, Notice } from 'mountkeeper';
import { fetchStatus } from './api-client.ts';
import type { ShareView, StatusView } from './status-view.ts';

const HEADER = ['SHARE', 'HEALTH', 'MOUNTED', 'CACHE', 'TO UPLOAD', 'ERRORED', 'SPEED', 'MESSAGE'];

function row(share: ShareView): string[] {
  return [
    share.name,
    share.health,
    share.mounted ? 'yes' : 'no',
    share.cache_display,
    String(share.dirty_count),
    String(share.errored_files),
    share.speed_display,
    share.health_message ?? '',
  ];
}

function summary(view: StatusView): string {
  const exposed = [
    view.smbd_running && 'SMB',
    view.nfs_exported && 'NFS',
    view.webdav_running && 'WebDAV',
  ].filter(Boolean);
  const parts = [
    `Up ${view.uptime}.`,
    view.all_synced ? 'All synced: safe to disconnect.' : 'Not all synced yet.',
    exposed.length > 0 ? `Exposed over ${exposed.join(', ')}.` : 'Exposed over no protocol.',
  ];
  if (view.nas_offline) parts.push('The NAS is offline.');
  return parts.join(' ');
}

/** Notices that need somebody's attention; `GET /api/notices` lists all. */
async function warnings(cli: CliContext): Promise<readonly string[]> {
  const { status, body } = await cli.request('GET', '/api/notices');
  if (status !== 200) return [];
  const notices = JSON.parse(body) as readonly Notice[];
  return notices.filter(({ level }) => level !== 'info').map(({ level, message }) => `${level}: ${message}`);
}

async function run(cli: CliContext): Promise<number> {
  if (cli.args.length > 0) {
    cli.printError('status takes no arguments; usage: mountkeeper status [--json]');
    return 64;
  }
  const { view, text } = await fetchStatus(cli);
  if (cli.json) {
    cli.print(text);
    return 0;
  }
  if (view.shares.length > 0) cli.table([HEADER, ...view.shares.map(row)]);
  else cli.print('No shares are configured.');
  cli.print(summary(view));
  for (const line of await warnings(cli)) cli.print(line);
  return 0;
}

export const statusCommand: CliCommand = {
  name: 'status',
  usage: '[--json]',
  summary: 'Show the state of every share.',
  run,
};
