import { definePlugin } from 'mountkeeper';
import type { Exporter, Offer, PluginContext } from 'mountkeeper';
import { Announcer } from './announcer.ts';
import { schema } from './config.ts';
import type { DiscoveryConfig } from './config.ts';
import { checks } from './doctor.ts';

const LOOK_MS = 2_000;
const EXPORTERS = ['exporter:smb', 'exporter:nfs', 'exporter:webdav'] as const;

function exporterOf(
  ctx: PluginContext<DiscoveryConfig>,
  name: (typeof EXPORTERS)[number],
): Exporter | undefined {
  try {
    return ctx.use(name);
  } catch {
    // That protocol's plugin is off.
    return undefined;
  }
}

export default definePlugin<DiscoveryConfig>({
  name: 'discovery',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Lets Finder, Explorer and Linux find the shares in the network.',
  config: { schema },
  register(ctx) {
    let announcer: Announcer | undefined;
    const offers = (): readonly Offer[] =>
      EXPORTERS.flatMap((name) => exporterOf(ctx, name)?.offers?.() ?? []);
    ctx.effect('announcements', (signal) => {
      announcer = new Announcer({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        settings: ctx.config,
        offers,
      });
      return async () => {
        await announcer?.close(signal.reason === 'handover' || signal.reason === 'reload');
        announcer = undefined;
      };
    });
    ctx.every({ name: 'look at what is served', ms: () => LOOK_MS, run: async () => announcer?.settle() });
    ctx.tap('collectNotices', () => announcer?.notices() ?? []);
    ctx.tap('collectChecks', (config) => checks(config));
  },
});
