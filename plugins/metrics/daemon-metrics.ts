/** Metrics of the daemon and its process. */
import { memoryUsage, resourceUsage } from 'node:process';
import type { PluginContext, PluginState, ReadMetric, StatusRecord } from 'mountkeeper';

const STATES: readonly PluginState[] = ['disabled', 'waiting', 'active', 'failed', 'invalid'];
const LEVELS = ['info', 'warning', 'error'] as const;

function statusMetrics(ctx: PluginContext): readonly ReadMetric[] {
  const record = (): StatusRecord => ctx.use('status').snapshot.record;
  return [
    {
      name: 'mountkeeper_status_version',
      help: 'Number of the status that the figures of shares come from; starts again with the daemon.',
      read: () => ctx.use('status').snapshot.version,
    },
    {
      name: 'mountkeeper_status_timestamp_seconds',
      help: 'When that status was taken.',
      read: () => ctx.use('status').snapshot.takenAt / 1000,
    },
    {
      name: 'mountkeeper_start_timestamp_seconds',
      help: 'When the daemon started.',
      read: () => record().startedAt / 1000,
    },
    {
      name: 'mountkeeper_all_synced',
      help: 'Whether everything that was written is known to be on the remotes.',
      read: () => Number(record().allSynced),
    },
    {
      name: 'mountkeeper_nas_offline',
      help: 'Whether a NAS does not answer.',
      read: () => Number(record().nasOffline),
    },
  ];
}

function serverMetrics(ctx: PluginContext): readonly ReadMetric[] {
  const record = (): StatusRecord => ctx.use('status').snapshot.record;
  return [
    {
      name: 'mountkeeper_server_up',
      help: 'Whether the server of a protocol serves; left out where the protocol is off.',
      labels: ['protocol'],
      read: () => {
        const { smbdRunning: smb, nfsExported: nfs, webdavRunning: webdav } = record();
        return Object.entries({ smb, nfs, webdav })
          .filter(([protocol]) => ctx.use('exporters').mayServe(protocol))
          .map(([protocol, isUp]) => ({ value: Number(isUp), labels: { protocol } }));
      },
    },
    {
      name: 'mountkeeper_notices',
      help: 'What the daemon has to say to people, by level.',
      labels: ['level'],
      read: () => {
        const { notices } = ctx.use('status');
        return LEVELS.map((level) => ({
          value: notices.filter((one) => one.level === level).length,
          labels: { level },
        }));
      },
    },
  ];
}

function otherMetrics(ctx: PluginContext): readonly ReadMetric[] {
  return [
    {
      name: 'mountkeeper_bandwidth_limit_bytes_per_second',
      help: 'What all mounts together may use; 0 is unlimited.',
      labels: ['direction'],
      read: () => {
        const { up, down } = ctx.use('bandwidth').read().effective;
        return [
          { value: up, labels: { direction: 'up' } },
          { value: down, labels: { direction: 'down' } },
        ];
      },
    },
    {
      name: 'mountkeeper_plugins',
      help: 'Plugins by state.',
      labels: ['state'],
      read: () => {
        const plugins = ctx.use('plugins').list();
        return STATES.map((state) => ({
          value: plugins.filter((one) => one.state === state).length,
          labels: { state },
        }));
      },
    },
    {
      name: 'mountkeeper_build_info',
      help: 'Always 1; the labels say what runs.',
      labels: ['node'],
      read: () => [{ value: 1, labels: { node: process.version } }],
    },
  ];
}

/** Named as in all Prometheus clients, so that existing dashboards for processes work. */
function processMetrics(): readonly ReadMetric[] {
  return [
    {
      name: 'process_resident_memory_bytes',
      help: 'Memory of the daemon, without its mounts and servers.',
      read: () => memoryUsage.rss(),
    },
    {
      name: 'nodejs_heap_size_used_bytes',
      help: 'JavaScript objects of the daemon.',
      read: () => memoryUsage().heapUsed,
    },
    {
      name: 'process_cpu_seconds_total',
      help: 'Processor time of the daemon, without its mounts and servers.',
      type: 'counter',
      read: () => {
        const { userCPUTime, systemCPUTime } = resourceUsage();
        return (userCPUTime + systemCPUTime) / 1e6;
      },
    },
  ];
}

export function daemonMetrics(ctx: PluginContext): readonly ReadMetric[] {
  return [...statusMetrics(ctx), ...serverMetrics(ctx), ...otherMetrics(ctx), ...processMetrics()];
}
