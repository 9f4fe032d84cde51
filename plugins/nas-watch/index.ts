import { join } from 'node:path';
import {
  createLatestQueue,
  definePlugin,
  formatDuration,
  Joi,
  readDescriptions,
  withRelease,
} from 'mountkeeper';
import type { LiveShare, PluginContext, ShareStatus, Snapshot } from 'mountkeeper';
import { schema } from './config.ts';
import type { NasWatchConfig } from './config.ts';
import { readOutages, writeOutages } from './outage-file.ts';
import type { Outages } from './outage-file.ts';
import { NasWatcher } from './watcher.ts';
import type { WatcherOptions } from './watcher.ts';
import { onReturn, probeFailed } from './on-return.ts';

declare module 'mountkeeper' {
  interface StatusRecord {
    /** At least one NAS is known to be offline. */
    nasOffline: boolean;
    /**
     * Since when the first of the offline NASes has been offline, in milliseconds since the epoch; null
     * when none is.
     */
    nasOfflineSince: number | null;
  }
  interface Events {
    /** The verdict about the NAS of a connection is another one. */
    'nas-watch:changed': { readonly connection: string; readonly isOffline: boolean };
  }
}

const LOOK_EVERY_MS = 500;

/** Every share is asked about at each look: found once for each snapshot. */
function statusByName(snapshot: () => Snapshot): (name: string) => ShareStatus | undefined {
  let last: { readonly of: Snapshot; readonly shares: ReadonlyMap<string, ShareStatus> } | undefined;
  return (name) => {
    const now = snapshot();
    if (last?.of !== now)
      last = { of: now, shares: new Map(now.record.shares.map((share) => [share.name, share])) };
    return last.shares.get(name);
  };
}

/** With what users can do meanwhile, by the shares of the NAS. */
function offlineNotice(connection: string, lastedMs: number, shares: readonly LiveShare[]): string {
  const own = shares.filter(({ spec }) => spec.connection.name === connection);
  const cutOff = own.filter(({ mount }) => !mount || mount.isUnreadable === true);
  const names = cutOff.map(({ spec }) => spec.share.name).join(', ');
  const time = formatDuration(lastedMs);
  const cached = own.some(({ mount }) => mount?.hasUnreadFolders === true)
    ? 'cached files stay readable in folders whose listings are at hand'
    : 'cached files stay readable';
  if (cutOff.length === 0)
    return `The NAS behind the connection ${connection} has been offline for ${time}; ${cached}, writes wait.`;
  if (cutOff.length === own.length)
    return (
      `The NAS behind the connection ${connection} has been offline for ${time}; until it is back, nothing can be ` +
      `listed in ${names}; what was written there is kept.`
    );
  return (
    `The NAS behind the connection ${connection} has been offline for ${time}; until it is back, nothing can be ` +
    `listed in ${names}; in its other shares, ${cached}, writes wait.`
  );
}

function createWatcher(
  ctx: PluginContext<NasWatchConfig>,
  former: Outages,
  { save, onChange }: Pick<WatcherOptions, 'save' | 'onChange'>,
): NasWatcher {
  const isStuck = (share: string): boolean => watcher.isStuck(share);
  const shares = () => ctx.use('shares').list();
  const returning = {
    clock: ctx.use('clock'),
    signal: ctx.signal,
    log: ctx.log,
    shares,
    isStuck,
    reconnect: (share: string) => ctx.send('reconnect', share),
    refresher: () => ctx.find('directoryRefresher'),
  };
  const watcher: NasWatcher = new NasWatcher(
    {
      clock: ctx.use('clock'),
      log: ctx.log,
      signal: ctx.signal,
      shares,
      onBack: (connection) => void onReturn(connection, returning),
      onOpen: (connection) => void probeFailed(connection, returning),
      onChange,
      save,
      dial: async (connection, end) => {
        const monitor = ctx.find('connections')?.of(connection);
        return monitor && (await monitor.dial(end)) === undefined;
      },
      status: statusByName(() => ctx.use('status').snapshot),
      prober: () => ctx.find('prober'),
      offlineMinutes: () => ctx.config.nas_offline_minutes,
      notify: (event) => ctx.send('notify', event),
    },
    former,
  );
  return watcher;
}

export default definePlugin<NasWatchConfig>({
  name: 'nas-watch',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Knows by evidence whether a NAS is offline, reports it, and recovers when it is back.',
  requires: ['shares'],
  config: { section: 'notifications', schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const changed = ctx.event({
      name: 'nas-watch:changed',
      summary: 'The NAS of a connection has been found to be offline, or to be back.',
      value: Joi.object({ connection: Joi.string().required(), isOffline: Joi.boolean().required() }),
    });
    const watcher = ctx.effect('remember outages', async () => {
      const file = join(ctx.use('paths').stateDir, 'nas-watch', 'outages.json');
      const saving = createLatestQueue<Outages>((outages) =>
        writeOutages(file, outages).catch((error: unknown) =>
          ctx.log.error({ file, err: error }, 'outages not saved'),
        ),
      );
      const opened = createWatcher(ctx, await readOutages(file), {
        save: (outages) => void saving.push(outages),
        onChange: changed,
      });
      return withRelease(opened, () => saving.idle());
    });
    ctx.every({
      name: 'look at every connection',
      ms: () => LOOK_EVERY_MS,
      run: async () => watcher()?.look(),
    });
    ctx.tap('shareHealthChanged', (change) => watcher()?.healthChanged(change));
    ctx.tap('collectNotices', () =>
      (watcher()?.offline ?? []).map(({ connection, lastedMs }) => ({
        level: 'warning' as const,
        message: offlineNotice(connection, lastedMs, ctx.use('shares').list()),
      })),
    );
    ctx.status('nasOffline', { default: false, read: () => (watcher()?.offline.length ?? 0) > 0 });
    ctx.status('nasOfflineSince', {
      default: null,
      read: () =>
        (watcher()?.offline ?? []).reduce<number | null>(
          (first, { since }) => Math.min(first ?? since, since),
          null,
        ),
    });
  },
});
