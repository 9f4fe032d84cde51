import { definePlugin, isAnybodyAsked, readDescriptions, withRelease } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { AssetCache } from './assets.ts';
import { eventsFrom, ShareEvents } from './live/events.ts';
import { schema } from './config.ts';
import type { DashboardConfig } from './config.ts';
import { Feeds } from './live/feeds.ts';
import { Memory } from './live/saved-state.ts';
import { Recent } from './live/recent.ts';
import { Series, seriesFrom } from './live/series.ts';
import { qrPanel } from './overview/qr-panel.ts';
import { Sources } from './pages/sources.ts';
import { routes } from './routes.ts';
import { setupTab } from './setup/setup-tab.ts';
import { passwordCard } from './settings/password-card.ts';
import { settingsTab } from './settings/settings-tab.ts';
import { doctorTab } from './tabs/doctor-tab.ts';
import { pluginsTab } from './tabs/plugins-tab.ts';
import { ownTabs } from './tabs/share-controls.ts';
import { sharePanels } from './tabs/share-panels.ts';

/** Interval of heartbeats to readers. */
const BEAT_MS = 2_000;
/** At most this much of the charts is lost when the daemon is killed. */
const SAVE_SERIES_MS = 300_000;
const EVENTS = 'events.json';
const SERIES = 'series.json';

interface Living {
  readonly recent: Recent;
  readonly assets: AssetCache;
  readonly feeds: Feeds;
  readonly events: ShareEvents;
  readonly series: Series;
  readonly seriesFile: Memory;
  close(): Promise<void>;
}

async function open(ctx: PluginContext, sources: Sources): Promise<Living> {
  const [clock, { stateDir, packageDir }, { log }] = [ctx.use('clock'), ctx.use('paths'), ctx];
  const recent = new Recent(clock);
  const assets = new AssetCache(packageDir);
  const feeds = new Feeds(sources, () => assets.build);
  const series = new Series(clock, seriesFrom(await Memory.read(stateDir, SERIES)));
  const seriesFile = new Memory({ clock, log, stateDir, name: SERIES, content: () => series.all() });
  const eventFile = new Memory({ clock, log, stateDir, name: EVENTS, content: () => events.all() });
  const events: ShareEvents = new ShareEvents(clock, eventsFrom(await Memory.read(stateDir, EVENTS)), () =>
    eventFile.changed(),
  );
  const stop = ctx.use('status').onPublish((snapshot) => {
    recent.heard(snapshot);
    const { live } = sources;
    events.heard(snapshot.record, (share) => live.get(share)?.remoteAnswers);
    feeds.changed();
  });
  return {
    recent,
    assets,
    feeds,
    events,
    series,
    seriesFile,
    close: async () => {
      stop();
      feeds.close();
      seriesFile.changed();
      await Promise.all([seriesFile.close(), eventFile.close()]);
    },
  };
}

export default definePlugin<DashboardConfig>({
  name: 'dashboard',
  version: '1.0.0',
  apiVersion: 1,
  description: 'The page for people: what is safe, what is wrong, what to do.',
  requires: ['clock', 'status', 'shares', 'bandwidth', 'tabs'],
  config: { schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const now = (): Living => {
      const live = living();
      if (!live) throw new Error('the dashboard is coming up');
      return live;
    };
    const sources = new Sources(ctx, () => now().recent);
    const living = ctx.effect('keep the pages that are read', async () =>
      withRelease(await open(ctx, sources), (live) => live.close()),
    );
    ctx.tap('afterCycle', (snapshot) => {
      living()?.recent.sample(snapshot);
      living()?.series.sample(snapshot.record);
      living()?.feeds.changed();
    });
    ctx.tap('shareHealthChanged', (change) => living()?.events.healthChanged(change));
    ctx.tap('notification', (event) => living()?.events.told(event));
    ctx.on('mount:rclone-replaced', (event) => living()?.events.rcloneReplaced(event));
    ctx.every({
      name: 'tell readers that the line is good',
      ms: () => BEAT_MS,
      run: async () => living()?.feeds.beat(),
    });
    ctx.every({
      name: 'keep the charts',
      ms: () => SAVE_SERIES_MS,
      run: async () => living()?.seriesFile.changed(),
    });
    ctx.route(
      ...routes({
        sources,
        feeds: () => now().feeds,
        assets: () => now().assets,
        series: () => now().series,
        changed: () => living()?.feeds.changed(),
        hasStatusPage: () => ctx.config.status_page,
        isPasswordSet: () => isAnybodyAsked(ctx.use('config').current.config.web),
      }),
    );
    const panels = sharePanels({ events: () => now().events, series: () => now().series });
    for (const tab of [
      ...ownTabs(ctx, sources),
      ...panels,
      pluginsTab(ctx),
      doctorTab(ctx),
      settingsTab(ctx),
      setupTab(ctx),
      passwordCard(ctx),
      qrPanel(sources),
    ])
      ctx.tab(tab);
  },
});
