import { join } from 'node:path';
import { definePlugin, formatDuration } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { schema } from './config.ts';
import type { NasWatchConfig } from './config.ts';
import { dial } from './dial.ts';
import { readOutages, writeOutages } from './outage-file.ts';
import type { Outages } from './outage-file.ts';
import { NasWatcher } from './watcher.ts';
import { onReturn } from './on-return.ts';

declare module 'mountkeeper' {
  interface StatusRecord {
    /**
     * Since when the NAS that went first has been offline, in milliseconds since the epoch; null when none
     * is.
     */
    nasOfflineSince?: number | null;
  }
}

const LOOK_EVERY_MS = 500;

/** A service that the daemon can do without. */
function orNone<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}

function createWatcher(
  ctx: PluginContext<NasWatchConfig>,
  former: Outages,
  save: (outages: Outages) => void,
): NasWatcher {
  const isStuck = (share: string): boolean => watcher.isStuck(share);
  const shares = () => ctx.use('shares').list();
  const onBack = (connection: string): void =>
    void onReturn(connection, {
      clock: ctx.use('clock'),
      signal: ctx.signal,
      log: ctx.log,
      shares,
      isStuck,
      reconnect: (share) => ctx.send('reconnect', share),
      refresher: () => orNone(() => ctx.use('directoryRefresher')),
    });
  const watcher: NasWatcher = new NasWatcher(
    {
      clock: ctx.use('clock'),
      log: ctx.log,
      signal: ctx.signal,
      shares,
      onBack,
      save,
      dial: dial,
      status: (name) => ctx.use('status').snapshot.record.shares.find((share) => share.name === name),
      prober: () => orNone(() => ctx.use('prober')),
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
  description: 'Knows by evidence whether a NAS is offline, tells, and welcomes it back.',
  requires: ['shares'],
  config: { section: 'notifications', schema },
  register(ctx) {
    let watcher: NasWatcher | undefined;
    ctx.effect('remember outages', async () => {
      const file = join(ctx.use('paths').stateDir, 'nas-watch', 'outages.json');
      let saving: Promise<void> = Promise.resolve();
      watcher = createWatcher(ctx, await readOutages(file), (outages) => {
        saving = saving
          .then(() => writeOutages(file, outages))
          .catch((error: unknown) => ctx.log.error({ file, err: error }, 'outages not saved'));
      });
      return async () => {
        watcher = undefined;
        await saving;
      };
    });
    ctx.every({
      name: 'look at every connection',
      ms: () => LOOK_EVERY_MS,
      run: async () => watcher?.look(),
    });
    ctx.tap('shareHealthChanged', (change) => watcher?.healthChanged(change));
    ctx.tap('collectNotices', () =>
      (watcher?.offline ?? []).map(({ connection, since }) => ({
        level: 'warning' as const,
        message: `The NAS behind the connection ${connection} has been offline for ${formatDuration(ctx.use('clock').now() - since)}; cached files stay readable, writes wait.`,
      })),
    );
    ctx.status('nasOffline', () => (watcher?.offline.length ?? 0) > 0);
    ctx.status('nasOfflineSince', () =>
      (watcher?.offline ?? []).reduce<number | null>(
        (first, { since }) => Math.min(first ?? since, since),
        null,
      ),
    );
  },
});
