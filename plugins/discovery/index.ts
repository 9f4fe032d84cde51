import { definePlugin, readDescriptions, withRelease } from 'mountkeeper';
import type { Offer } from 'mountkeeper';
import { Announcer } from './announcer.ts';
import { schema } from './config.ts';
import type { DiscoveryConfig } from './config.ts';
import { checks } from './doctor.ts';
import { createNasFinder } from './finder.ts';

const LOOK_MS = 2_000;
export default definePlugin<DiscoveryConfig>({
  name: 'discovery',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Lets Finder, Explorer and Linux find the shares in the network.',
  config: { schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    ctx.provide('nasFinder', () => createNasFinder({ clock: ctx.use('clock'), log: ctx.log }));
    const offers = (): readonly Offer[] =>
      ctx
        .use('exporters')
        .list()
        .flatMap(({ exporter }) => exporter.offers?.() ?? []);
    const announcer = ctx.effect('announcements', (signal) =>
      withRelease(
        new Announcer({
          clock: ctx.use('clock'),
          log: ctx.log,
          processes: ctx.use('processes'),
          settings: ctx.config,
          offers,
        }),
        (one) => one.close(signal.reason === 'handover' || signal.reason === 'reload'),
      ),
    );
    ctx.every({ name: 'look at what is served', ms: () => LOOK_MS, run: async () => announcer()?.settle() });
    ctx.tap('collectNotices', () => announcer()?.notices() ?? []);
    ctx.tap('collectChecks', () => checks(ctx.use('exporters').list()));
  },
});
