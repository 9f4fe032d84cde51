import { definePlugin } from 'mountkeeper';
import { loadAssets } from './assets.ts';
import type { Assets } from './assets.ts';
import { Feeds } from './live/feeds.ts';
import { Recent } from './live/recent.ts';
import { Sources } from './pages/sources.ts';
import { routes } from './routes.ts';
import { doctorTab } from './tabs/doctor-tab.ts';
import { pluginsTab } from './tabs/plugins-tab.ts';
import { ownTabs } from './tabs/share-controls.ts';

/** How often readers hear that the line is good. */
const BEAT_MS = 2_000;

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the dashboard is coming up');
  return value;
}

export default definePlugin({
  name: 'dashboard',
  version: '1.0.0',
  apiVersion: 1,
  description: 'The page for people: what is safe, what is wrong, what to do.',
  requires: ['clock', 'status', 'shares', 'bandwidth', 'tabs'],
  register(ctx) {
    let recent: Recent | undefined;
    let assets: Assets | undefined;
    let feeds: Feeds | undefined;
    const sources = new Sources(ctx, () => present(recent));
    ctx.effect('keep the pages that are read', async () => {
      recent = new Recent(ctx.use('clock'));
      assets = await loadAssets(ctx.use('paths').packageDir);
      feeds = new Feeds(sources, assets.build);
      const stop = ctx.use('status').onPublish((snapshot) => {
        recent?.heard(snapshot);
        feeds?.changed();
      });
      return () => {
        stop();
        feeds?.close();
        recent = undefined;
        feeds = undefined;
        assets = undefined;
      };
    });
    ctx.tap('afterCycle', (snapshot) => {
      recent?.sample(snapshot);
      feeds?.changed();
    });
    ctx.every({ name: 'tell readers that the line is good', ms: () => BEAT_MS, run: async () => feeds?.beat() });
    ctx.route(...routes({
      sources, feeds: () => present(feeds), assets: () => present(assets),
      isPasswordSet: () => ctx.use('config').current.config.web.password !== '',
    }));
    for (const tab of [...ownTabs(ctx, sources), pluginsTab(ctx), doctorTab(ctx)]) ctx.tab(tab);
  },
});
