import { definePlugin, readDescriptions, withRelease } from 'mountkeeper';
import { webhookCommand } from './cli.ts';
import { checkUntrusted, notices, schema, unknownFormat } from './config.ts';
import type { WebhooksConfig } from './config.ts';
import { discord, slack } from './delivery/text-formats.ts';
import { checks } from './doctor.ts';
import { routes } from './routes.ts';
import { openService } from './service.ts';
import { notificationsTab } from './tab.ts';

const LOOK_EVERY_MS = 1_000;

export default definePlugin<WebhooksConfig>({
  name: 'webhooks',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Delivers notifications over HTTP: signed, retried for hours, each once.',
  config: {
    section: 'notifications',
    schema,
    checkUntrusted,
    descriptions: readDescriptions(import.meta.url),
  },
  register(ctx) {
    const service = ctx.effect('deliver notifications', async () =>
      withRelease(await openService(ctx), (opened) => opened.settled()),
    );
    ctx.every({
      name: 'send what is due',
      ms: () => LOOK_EVERY_MS,
      run: async () => void service()?.outbox.work(),
    });
    ctx.tap('notification', (event) => void service()?.outbox.add(event));
    ctx.tap('afterCycle', (snapshot) => service()?.statusEvents.look(snapshot));
    ctx.tap('shareHealthChanged', (change) => service()?.statusEvents.healthChanged(change));
    ctx.tap('afterMount', (share) => service()?.statusEvents.mounted(share));
    ctx.tap('collectNotices', () => [
      ...notices(ctx.config),
      ...unknownFormat(ctx.config, () => ctx.use('webhookFormats').names()),
    ]);
    ctx.tap('collectChecks', (config) => checks(config));
    const access = { outbox: () => service()?.outbox, clock: () => ctx.use('clock'), signal: ctx.signal };
    ctx.route(...routes(access));
    ctx.tab(notificationsTab(access, () => ctx.config.webhook_url !== ''));
    ctx.cli(webhookCommand);
    ctx.webhookFormat(slack);
    ctx.webhookFormat(discord);
  },
});
