import { formatDuration } from 'mountkeeper';
import type { NotificationEvent } from 'mountkeeper';
import type { Outage } from './outage.ts';

export function offlineEvent(connection: string, outage: Outage, lastedMs: number): NotificationEvent {
  return {
    type: 'nas.offline',
    severity: 'error',
    key: `nas.offline/${connection}/${outage.since}`,
    message: `The NAS behind the connection ${connection} has been offline for ${formatDuration(lastedMs)}.`,
    data: {
      connection,
      since: new Date(outage.since).toISOString(),
      duration_seconds: Math.round(lastedMs / 1000),
    },
  };
}

export function backEvent(connection: string, outage: Outage, lastedMs: number): NotificationEvent {
  return {
    type: 'nas.back',
    severity: 'info',
    key: `nas.back/${connection}/${outage.since}`,
    message: `The NAS behind the connection ${connection} is back after ${formatDuration(lastedMs)}.`,
    data: {
      connection,
      since: new Date(outage.since).toISOString(),
      duration_seconds: Math.round(lastedMs / 1000),
    },
  };
}
